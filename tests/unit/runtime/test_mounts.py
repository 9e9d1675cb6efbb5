"""Mounts for which the kernel reports every change."""

from __future__ import annotations

from rag_assets.runtime.watched_folders import Mounts

LISTED = r"""
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:5 / /proc rw - proc proc rw
23 21 0:40 / /srv/net rw,relatime shared:2 master:1 - nfs4 server:/export rw
24 21 0:41 / /srv/with\040space rw - xfs /dev/vdb rw
25 23 0:42 / /srv/net/disk rw - ext4 /dev/vdc rw
26 21 0:43 / /home/a/drive rw - fuse.sshfs a@b: rw
27 21 0:44 / /mnt rw - cifs //server/share rw
28 21 0:45 / /mnt rw - btrfs /dev/vdd rw
""".strip()


def test_only_what_this_machine_alone_writes_to_tells_of_changes() -> None:
    mounts = Mounts(LISTED)
    assert mounts.reports_every_change("/var/docs")
    assert mounts.reports_every_change("/srv/with space/docs")
    assert mounts.reports_every_change("/srv/net/disk/docs"), "a local disk, wherever it is mounted"
    assert mounts.reports_every_change("/srv/network"), "only its name begins alike"
    assert mounts.reports_every_change("/mnt/docs"), "what was mounted last counts"
    assert not mounts.reports_every_change("/srv/net")
    assert not mounts.reports_every_change("/srv/net/docs/a")
    assert not mounts.reports_every_change("/srv"), "a part of it is on another machine"
    assert not mounts.reports_every_change("/home/a")


def test_this_machine_has_mounts_and_where_none_are_known_none_tells() -> None:
    assert Mounts().reports_every_change("/proc") is False
    assert Mounts("").reports_every_change("/") is False
