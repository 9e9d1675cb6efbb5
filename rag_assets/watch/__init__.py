"""The change watcher: syncs tenants within seconds after their sources change.

The file system reports changes in folders, and the catalog reports pushed records and requests to
reindex. Both mark a tenant, and a fork of the fork server syncs the marked tenants. Events may be
lost, and network file systems send none. So the sensor still lists unwatched sources at every tick
and the others in turn, and it remains authoritative.

`trees` reports changed folders, `mounts` and `source_folders` decide if these reports are reliable,
and `folders` maps a path to its tenants. `marks` orders the next syncs, `lanes` limits their
concurrency, and `watcher` connects these parts. The command line provides the program that a fork
executes.
"""
