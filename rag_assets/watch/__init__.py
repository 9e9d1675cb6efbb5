"""The change watcher: tenants whose sources change are synced within seconds.

The file system tells of changes in folders, and the catalog of pushed records and requests to
reindex; both mark a tenant, and a fork of the fork server syncs those that are marked. An event may
be lost, and on network file systems there are none: the sensor lists what is not watched at every
tick, everything else in turn, and remains the truth.

`trees` hears of changes, `mounts` and `source_folders` decide where that can be relied on,
`folders` knows which tenants a path belongs to, `marks` what is synced next, `lanes` how much at
once, and `watcher` holds them together. What a fork executes is the command line's.
"""
