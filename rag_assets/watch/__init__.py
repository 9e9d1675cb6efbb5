"""The change watcher: tenants whose sources change are synced within seconds.

The file system tells of changes in folders, and the catalog of pushed records and requests to
reindex; both mark a tenant, and a fork of the fork server syncs those that are marked. An event may
be lost, and on network file systems there are none: the sensor that lists every source remains the
truth, and finds what was missed.

`marks` decides what is synced next, `folders` which tenants a path belongs to, and `watcher` does
the waiting. What a fork executes is the command line's.
"""
