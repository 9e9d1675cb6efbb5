"""The trial of a living index: it is searched and edited while its builds are published."""
