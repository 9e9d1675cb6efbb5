"""Records that applications push, with their pages, contents and manifests."""
