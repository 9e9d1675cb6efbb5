"""The change watcher, which syncs tenants within seconds after their sources change.

The file system reports changes in folders, and the catalog reports pushed records and requests to
reindex. Each such report marks a tenant, and a fork of the fork server syncs the marked tenants.
Events may be lost, and network file systems send none. So Dagster's sensor remains authoritative:
at every tick it lists the sources that are not watched, and in rotation also the watched ones.

`trees` reports changed folders, `mounts` and `source_folders` decide if these reports are reliable,
and `folders` maps a path to its tenants. `marks` orders the next syncs, `lanes` limits their
concurrency, and `watcher` connects these parts. The command line provides the program that a fork
executes.
"""
