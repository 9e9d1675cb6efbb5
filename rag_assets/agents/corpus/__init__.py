"""Documentation made of what commands say of themselves: `--help`, or their man pages."""
