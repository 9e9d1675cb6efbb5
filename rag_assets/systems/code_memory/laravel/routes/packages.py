"""Routes that Laravel and its packages create by a single call.

| call | of |
|---|---|
| `Auth::routes(options)`, `Route::auth(options)` | laravel/ui |
| `Broadcast::routes(attributes)`, `Broadcast::userRoutes` | the framework |
| `Route::inertia(uri, component)` | inertiajs/inertia-laravel |
| `Route::livewire(uri, component)`, `Volt::route(uri, component)` | livewire |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_assets.systems.code_memory.laravel.routes.frames import Arguments, Frame
from rag_assets.systems.code_memory.laravel.routes.stated import keyed
from rag_assets.systems.code_memory.laravel.routes.values import Unknown, Value, array, truth_of

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_Row: TypeAlias = tuple[str, str, str, str]
"""Method, URI, action and name of a route."""

_AUTH: Final[Mapping[str, tuple[_Row, ...]]] = {
    "login": (
        ("GET", "login", "Auth\\LoginController@showLoginForm", "login"),
        ("POST", "login", "Auth\\LoginController@login", ""),
    ),
    "logout": (("POST", "logout", "Auth\\LoginController@logout", "logout"),),
    "register": (
        ("GET", "register", "Auth\\RegisterController@showRegistrationForm", "register"),
        ("POST", "register", "Auth\\RegisterController@register", ""),
    ),
    "reset": (
        (
            "GET",
            "password/reset",
            "Auth\\ForgotPasswordController@showLinkRequestForm",
            "password.request",
        ),
        (
            "POST",
            "password/email",
            "Auth\\ForgotPasswordController@sendResetLinkEmail",
            "password.email",
        ),
        (
            "GET",
            "password/reset/{token}",
            "Auth\\ResetPasswordController@showResetForm",
            "password.reset",
        ),
        ("POST", "password/reset", "Auth\\ResetPasswordController@reset", "password.update"),
    ),
    "confirm": (
        (
            "GET",
            "password/confirm",
            "Auth\\ConfirmPasswordController@showConfirmForm",
            "password.confirm",
        ),
        ("POST", "password/confirm", "Auth\\ConfirmPasswordController@confirm", ""),
    ),
    "verify": (
        ("GET", "email/verify", "Auth\\VerificationController@show", "verification.notice"),
        (
            "GET",
            "email/verify/{id}/{hash}",
            "Auth\\VerificationController@verify",
            "verification.verify",
        ),
        ("POST", "email/resend", "Auth\\VerificationController@resend", "verification.resend"),
    ),
}
_CONTROLLERS: Final = "App\\Http\\Controllers"
_CSRF: Final = "Illuminate\\Foundation\\Http\\Middleware\\VerifyCsrfToken"
_BROADCASTS: Final = "\\Illuminate\\Broadcasting\\BroadcastController"


def authentication(machine: Machine, given: Arguments, frame: Frame) -> None:
    """Add the routes that `Auth::routes()` creates.

    Args:
        given: the arguments: one array of options.
    """
    options = given.at(0, "options")
    if isinstance(options, Unknown):
        machine.assume("the options of Auth::routes()")
    own = machine.router.in_namespace("Auth\\LoginController") in machine.program.classes
    with machine.within(frame), machine.router.group({"namespace": None if own else _CONTROLLERS}):
        confirms = machine.router.in_namespace("Auth\\ConfirmPasswordController")
        defaults = {"confirm": confirms in machine.program.classes, "verify": False}
        context = machine.context(frame)
        for method, uri, action, name in _chosen(keyed(options), defaults):
            draft = machine.router.add((method,), uri, action, context)
            if name:
                draft.name(name)


def _chosen(options: Mapping[str | int, Value], defaults: Mapping[str, bool]) -> Iterator[_Row]:
    for option, rows in _AUTH.items():
        told = options.get(option)
        wanted = defaults.get(option, True) if told is None else truth_of(told)
        if wanted is not False:
            yield from rows


def broadcasting(machine: Machine, name: str, given: Arguments, frame: Frame) -> None:
    """Add the routes that `Broadcast::routes()` or a similar call creates.

    Args:
        name: the name of the call, in lower case.
        given: the arguments: attributes of a group.
    """
    user = name == "userroutes"
    action = f"{_BROADCASTS}@authenticate{'User' if user else ''}"
    attributes = keyed(given.at(0, "attributes")) or {"middleware": array(["web"])}
    group = {str(key): value for key, value in attributes.items()}
    with machine.router.group(group):
        uri = "/broadcasting/user-auth" if user else "/broadcasting/auth"
        draft = machine.router.add(("GET", "POST"), uri, action, machine.context(frame))
        draft.middleware([_CSRF], key="excluded_middleware")


def _inertia(machine: Machine, given: Arguments, frame: Frame) -> Value:
    action = "\\Inertia\\Controller"
    context = machine.context(frame)
    return machine.router.add(("GET", "HEAD"), given.at(0, "uri"), {"uses": action}, context)


def _livewire(machine: Machine, given: Arguments, frame: Frame) -> Value:
    component = given.at(1, "component")
    stated = isinstance(component, str) and "\\" in component
    action = f"\\{component}" if stated else Unknown("a component")
    return machine.router.add(("GET",), given.at(0, "uri"), action, machine.context(frame))


def _auth(machine: Machine, given: Arguments, frame: Frame) -> Value:
    authentication(machine, given, frame)
    return None


ON_ROUTER: Final[Mapping[str, Callable[[Machine, Arguments, Frame], Value]]] = {
    "auth": _auth,
    "inertia": _inertia,
    "livewire": _livewire,
}
"""Functions that apply calls on the router, by the call's name in lower case."""


def of_facade(machine: Machine, owner: str, name: str, given: Arguments, frame: Frame) -> bool:
    """Add the routes that a static call creates; return whether it creates any.

    Args:
        owner: the class, without its namespace.
        name: the name of the call, in lower case.
    """
    if owner == "Auth" and name == "routes":
        authentication(machine, given, frame)
    elif owner == "Broadcast" and name in {"routes", "channelroutes", "userroutes"}:
        broadcasting(machine, name, given, frame)
    elif owner == "Volt" and name == "route":
        _livewire(machine, given, frame)
    else:
        return False
    return True
