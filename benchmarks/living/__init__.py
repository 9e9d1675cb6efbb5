"""The trial of a living index, which is asked and edited while its builds are published."""
