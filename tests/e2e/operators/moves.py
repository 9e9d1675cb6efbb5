"""Steps that move and copy installations, and mistakes with addresses."""

from __future__ import annotations

import shutil
from copy import deepcopy

from tests.databases import execute
from tests.e2e.operators.everyday import end_removal
from tests.e2e.operators.model import BLOBS, LAKE, PREFIX, Operated, copy_folder
from tests.e2e.operators.walk import MOVE, Walk, step
from tests.parsers import share_parsers
from tests.sites import Site

_VARIABLES = {"lake": LAKE, "blobs": BLOBS}
_INVALID_PREFIXES = ("Prod", "a,b", "_x", "*", "-x", "x/y")

# -- moves


@step(4)
def change_prefix(walk: Walk, operated: Operated) -> None:
    before = operated.fingerprint()
    former = operated.environment[PREFIX]
    operated.environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-p")
    assert "installation move" in operated.refused("sync", walk.tenant(operated))
    assert operated.fingerprint() == before
    if walk.chance(0.3):
        operated.environment[PREFIX] = former
        return
    operated.persist("tenants", "list", through=MOVE)
    operated.verify()


@step(5)
def move_store(walk: Walk, operated: Operated) -> None:
    """Move the lake or the blob store to another folder; keep or delete the former folder."""
    kind = walk.random.choice(["lake", "blobs"])
    former = operated.place(kind)
    place = walk.world.folder / walk.world.new_name(f"{operated.name}-{kind}")
    operated.environment[_VARIABLES[kind]] = str(place)
    assert "installation move" in operated.refused("sync", walk.tenant(operated))
    shutil.rmtree(place, ignore_errors=True)
    if walk.chance(0.5):
        copy_folder(former, place)
    else:
        walk.note(f"renames {kind}")
        former.rename(place)
    operated.persist("tenants", "list", through=MOVE)


@step(3)
def move_home(walk: Walk, operated: Operated) -> None:
    """Move the home folder by renaming it, or by copying it and deleting the original."""
    former = operated.site.home
    home = walk.world.folder / walk.world.new_name(operated.name) / "home"
    home.parent.mkdir()
    if walk.chance(0.5):
        walk.note("by copy")
        copy_folder(former, home)
        shutil.rmtree(former)
    else:
        former.rename(home)
    operated.move_home(home)
    operated.persist("tenants", "list", through=MOVE)


@step(3)
def move_catalog(walk: Walk, operated: Operated) -> None:
    operated.move_database(walk.world.new_name(f"{walk.world.stem}{operated.name[0]}"))
    refusal = operated.refused("tenants", "list")
    assert "installation move" in refusal
    assert "installation clone" in refusal
    operated.persist("tenants", "list", through=MOVE)


@step(2)
def move_everything(walk: Walk, operated: Operated) -> None:
    """Move to another machine: home folder, stores, catalog and prefix change at once."""
    former, home = operated.site.home, walk.world.folder / walk.world.new_name("machine") / "home"
    stores = {kind: operated.place(kind) for kind in ("lake", "blobs")}
    home.parent.mkdir()
    copy_folder(former, home)
    for kind, place in stores.items():
        to = home.parent / kind
        copy_folder(place, to)
        operated.environment[_VARIABLES[kind]] = str(to)
    for folder in {former, *stores.values()}:
        shutil.rmtree(folder, ignore_errors=True)
    operated.move_home(home)
    operated.move_database(walk.world.new_name(f"{walk.world.stem}{operated.name[0]}"))
    operated.environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-m")
    operated.persist("tenants", "list", through=MOVE)
    operated.verify()


# -- clones


@step(2)
def clone(walk: Walk, operated: Operated) -> None:
    """Decommission the other installation, and replace it with a staging copy of this one."""
    for tenant_id in operated.tenants:
        operated.settle(tenant_id)
    _decommission(walk, walk.other(operated))
    before = operated.fingerprint()
    staging = _copy(walk, operated)
    for command in (["sync", walk.tenant(staging)], ["compact"], ["tenants", "list"]):
        refusal = staging.refused(*command)
        assert "installation clone" in refusal
        assert "installation move" in refusal
    assert "--yes" in staging.refused("installation", "clone")
    if walk.chance(0.4):
        walk.kill(staging, ["installation", "clone", "--yes"], walk.random.uniform(0.05, 1.0))
    staging.persist("tenants", "list", through=["installation clone"])
    assert staging.id != operated.id
    if staging.environment[PREFIX] == operated.environment[PREFIX]:
        assert PREFIX in staging.refused("sync", walk.tenant(staging))
        staging.environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-c")
        staging.persist("tenants", "list", through=MOVE)
    staging.verify()
    assert operated.fingerprint() == before
    walk.installations = [operated, staging]


def _copy(walk: Walk, operated: Operated) -> Operated:
    """Copy home folder, stores, sources and catalog, as for a staging environment."""
    name = walk.world.new_name("staging")
    folder = walk.world.folder / name
    folder.mkdir()
    copy_folder(operated.site.home, folder / "home")
    environment = dict(operated.environment)
    for kind, variable in _VARIABLES.items():
        if not operated.place(kind).is_relative_to(operated.site.home):
            copy_folder(operated.place(kind), folder / kind)
        if variable in environment:
            environment[variable] = str(folder / kind)
    if walk.chance(0.8):
        environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-c")
    staging = Operated(walk.world, name, Site(folder / "home", environment))
    staging.copy_database_of(operated, walk.world.new_name(f"{walk.world.stem}s"))
    staging.tenants = deepcopy(operated.tenants)
    for tenant_id, tenant in staging.tenants.items():
        if tenant.folder.is_relative_to(operated.site.home):
            tenant.folder = folder / "home" / tenant.folder.relative_to(operated.site.home)
        else:
            copy_folder(tenant.folder, folder / "disk" / tenant_id)
            tenant.folder = folder / "disk" / tenant_id
            staging.set_root(tenant_id, tenant.folder)
    staging.erased = dict.fromkeys(operated.erased, ())
    staging.revoked = set(operated.revoked)
    return staging


def _decommission(walk: Walk, operated: Operated) -> None:
    """Remove every tenant with a receipt, then the catalog, the folders and the indexes."""
    for tenant_id in sorted(operated.tenants):
        end_removal(operated, tenant_id)
    for name in operated.indexes():
        assert not walk.world.words_behind(name), name
        walk.world.client.indices.delete(index=name)
    for folder in {operated.site.home, *operated.places}:
        shutil.rmtree(folder, ignore_errors=True)
    for name in (operated.database_name, *(dump.database for dump in operated.dumps)):
        execute(walk.world.postgres_url, "DROP DATABASE {} WITH (FORCE)", name)


# -- mistakes


@step(3)
def copied_home(walk: Walk, operated: Operated) -> None:
    """Run commands in a copy of the home folder."""
    before = operated.fingerprint()
    home = walk.world.folder / walk.world.new_name("copy")
    copy_folder(operated.site.home, home)
    duplicate = Operated(walk.world, "copy", Site(home, operated.environment))
    tenant_id = walk.tenant(operated)
    for command in (
        ("sync", tenant_id),
        ("tenants", "remove", tenant_id, "--yes"),
        ("compact",),
        ("tenants", "list"),
    ):
        refusal = duplicate.refused(*command)
        assert "installation clone" in refusal or "RAG_ASSETS_HOME" in refusal
    assert operated.fingerprint() == before
    shutil.rmtree(home)


@step(4)
def wrong_address(walk: Walk, operated: Operated) -> None:
    """Configure the catalog, a store or the prefix of the other installation."""
    other = walk.other(operated)
    before = operated.fingerprint()
    name = walk.random.choice(["RAG_ASSETS_DATABASE_URL", PREFIX, LAKE, BLOBS])
    values = {
        "RAG_ASSETS_DATABASE_URL": other.database_url,
        PREFIX: other.environment[PREFIX],
        LAKE: str(other.place("lake")),
        BLOBS: str(other.place("blobs")),
    }
    walk.note(name)
    tenant_id = walk.tenant(operated)
    for command in (("sync", tenant_id), ("tenants", "list"), ("compact",)):
        refusal = operated.refused(*command, **{name: values[name]})
        assert name in refusal
    if name != PREFIX:
        operated.refused("installation", "move", "--yes", **{name: values[name]})
    assert operated.fingerprint() == before


@step(1)
def invalid_prefix(walk: Walk, operated: Operated) -> None:
    prefix = walk.random.choice(_INVALID_PREFIXES)
    walk.note(prefix)
    for command in (("tenants", "list"), ("sync", walk.tenant(operated))):
        assert PREFIX in operated.refused(*command, **{PREFIX: prefix})


@step(2)
def second_home(walk: Walk, operated: Operated) -> None:
    """Use the catalog from another home folder, as a second machine does."""
    home = walk.world.folder / walk.world.new_name("worker")
    home.mkdir()
    share_parsers(home)
    places = {LAKE: str(operated.place("lake")), BLOBS: str(operated.place("blobs"))}
    worker = Site(home, {**operated.environment, **places})
    states = {one["id"]: one["state"] for one in worker.done("tenants", "list")["tenants"]}
    assert states == dict.fromkeys(operated.tenants, "ACTIVE")
    assert worker.run("compact").code == 0
    # The catalog stores the roots of tenants.yaml as absolute paths.
    assert worker.run("sync", walk.tenant(operated)).code == 0
    states = {one["id"]: one["state"] for one in operated.done("tenants", "list")["tenants"]}
    assert states == dict.fromkeys(operated.tenants, "ACTIVE")
    shutil.rmtree(home)


@step(2)
def lose_local(walk: Walk, operated: Operated) -> None:
    """Delete `.local` except the uploaded files, which exist only there."""
    local = operated.site.home / ".local"
    for path in sorted(local.iterdir()):
        if path.name == "blobs":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    share_parsers(operated.site.home)
    for tenant_id in operated.tenants:
        operated.persist("sync", tenant_id, "--repair", through=["sync"])
    operated.verify()
