"""Bases of models that packages bring, with the fields that they give to their heirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LOGIN: Final = {"password": ("CharField", ""), "last_login": ("DateTimeField", "")}
_RIGHTS: Final = {
    "is_superuser": ("BooleanField", ""),
    "groups": ("ManyToManyField", "django.contrib.auth.models.Group"),
    "user_permissions": ("ManyToManyField", "django.contrib.auth.models.Permission"),
}
_USER: Final = {
    "username": ("CharField", ""),
    "first_name": ("CharField", ""),
    "last_name": ("CharField", ""),
    "email": ("EmailField", ""),
    "is_staff": ("BooleanField", ""),
    "is_active": ("BooleanField", ""),
    "date_joined": ("DateTimeField", ""),
    **_RIGHTS,
    **_LOGIN,
}
_SESSION: Final = {
    "session_key": ("CharField", ""),
    "session_data": ("TextField", ""),
    "expire_date": ("DateTimeField", ""),
}
_TREE: Final = dict.fromkeys(("lft", "rght", "tree_id", "level"), ("PositiveIntegerField", ""))
_NODE: Final = {
    "path": ("CharField", ""),
    "depth": ("PositiveIntegerField", ""),
    "numchild": ("PositiveIntegerField", ""),
}

MODEL_BASES: Final = frozenset(
    {"django.db.models.Model", "django.db.models.base.Model", "django.contrib.gis.db.models.Model"}
)
"""What every model descends from."""

KNOWN_MODELS: Final = tuple(
    f"django.contrib.{name}"
    for name in (
        "auth.models.User",
        "auth.models.Group",
        "auth.models.Permission",
        "contenttypes.models.ContentType",
        "sites.models.Site",
        "sessions.models.Session",
        "redirects.models.Redirect",
        "admin.models.LogEntry",
        "flatpages.models.FlatPage",
    )
)
"""Models that Django itself brings."""

KNOWN_BASES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    **{name: {} for name in (*MODEL_BASES, *KNOWN_MODELS)},
    "django.contrib.auth.models.AbstractUser": _USER,
    "django.contrib.auth.models.AbstractBaseUser": _LOGIN,
    "django.contrib.auth.base_user.AbstractBaseUser": _LOGIN,
    "django.contrib.auth.models.PermissionsMixin": _RIGHTS,
    "django.contrib.sessions.base_session.AbstractBaseSession": _SESSION,
    "mptt.models.MPTTModel": _TREE,
    "tree_queries.models.TreeNode": {"parent": ("TreeNodeForeignKey", "self")},
    "treebeard.mp_tree.MP_Node": _NODE,
    "polymorphic.models.PolymorphicModel": {
        "polymorphic_ctype": ("ForeignKey", "django.contrib.contenttypes.models.ContentType")
    },
    "model_utils.models.TimeStampedModel": {
        "created": ("AutoCreatedField", ""),
        "modified": ("AutoLastModifiedField", ""),
    },
    "django_extensions.db.models.TimeStampedModel": {
        "created": ("CreationDateTimeField", ""),
        "modified": ("ModificationDateTimeField", ""),
    },
    "wagtail.models.Page": {},
    "modelcluster.models.ClusterableModel": {},
    "taggit.models.TaggedItemBase": {},
    "solo.models.SingletonModel": {},
    "parler.models.TranslatableModel": {},
}
"""Fields by name with their class and the model that they refer to; of a base that may be a model
of its own: none."""
