"""Stack traces of each language: exception, the frame in the project's code, signature."""

from __future__ import annotations

import string
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.systems.experience.traces import (
    compute_question_keys,
    compute_stored_keys,
    condense_errors,
    condense_prose,
    condense_traces,
    find_error_line,
    normalize_line,
    read_traces,
)

TRACES = {
    "python": """\
Traceback (most recent call last):
  File "/home/ci/build/shop/orders/views.py", line 41, in checkout
    price = prices[item.sku]
            ~~~~~~^^^^^^^^^^
  File "/home/ci/venv/lib/python3.11/site-packages/cachetools/__init__.py", line 68, in __getitem__
    return self.__missing__(key)
KeyError: 'sku'""",
    "python, caused": """\
Traceback (most recent call last):
  File "/app/orders/db.py", line 12, in save
    cursor.execute(sql)
psycopg2.errors.UndefinedColumn: column "x" does not exist
LINE 1: select x

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/orders/views.py", line 44, in checkout
    save()
django.db.utils.ProgrammingError: could not save""",
    "node": """\
/srv/app/src/cart.js:12
    return item.price.amount;
                      ^

TypeError: Cannot read properties of undefined (reading 'amount')
    at total (/srv/app/src/cart.js:12:23)
    at Array.map (<anonymous>)
    at Layer.handle [as handle] (/srv/app/node_modules/express/lib/router/layer.js:95:5)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)

Node.js v18.17.0""",
    "browser": """\
TypeError: can't access property "id", cart is undefined
total@https://shop.example/static/js/main.3f2a1bc9.js:12:3
render@https://shop.example/static/js/main.3f2a1bc9.js:40:3""",
    "java": """\
Exception in thread "main" org.springframework.web.util.NestedServletException: Request failed
\tat org.springframework.web.servlet.FrameworkServlet.processRequest(FrameworkServlet.java:1014)
\tat com.shop.web.CartController.pay(CartController.java:55)
\tat java.base/java.lang.Thread.run(Thread.java:829)
Caused by: java.lang.IllegalStateException: cart 4711 is empty
\tat java.base/java.util.Optional.orElseThrow(Optional.java:403)
\tat com.shop.cart.CartService.checkout(CartService.java:88)
\t... 23 more""",
    "kotlin": """\
kotlin.UninitializedPropertyAccessException: lateinit property repo has not been initialized
\tat com.shop.MainKt.main(Main.kt:7)
\tat com.shop.MainKt.main(Main.kt)""",
    "go": """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48e0a3]

goroutine 34 [running]:
panic({0x4a1b20, 0x53e1c0})
\t/usr/local/go/src/runtime/panic.go:884 +0x213
example.org/shop/store.(*Store).Load(0x0, {0x10, 0x2})
\t/src/store/load.go:31 +0x1d
created by net/http.(*Server).Serve in goroutine 1
\t/usr/local/go/src/net/http/server.go:3086 +0x5cb
exit status 2""",
    "rust": """\
thread 'main' panicked at src/cart.rs:10:15:
index out of bounds: the len is 3 but the index is 99
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90c541806f23a127002de5b4038be731ba1458ca/library/std/src/panicking.rs:578:5
   1: core::panicking::panic_fmt
             at /rustc/90c541806f23a127002de5b4038be731ba1458ca/library/core/src/panicking.rs:67:14
   2: shop::cart::total
             at ./src/cart.rs:10:15
note: run with `RUST_BACKTRACE=full` for a verbose backtrace.""",
    "php": """\
PHP Fatal error:  Uncaught TypeError: Cart::add() needs a string in /var/www/app/Cart.php:33
Stack trace:
#0 /var/www/app/Http/CartController.php(12): App\\Cart->add(NULL)
#1 /var/www/vendor/laravel/framework/src/Illuminate/Routing/Controller.php(54): call(Array)
#2 {main}
  thrown in /var/www/app/Cart.php on line 33""",
    "laravel": """\
[2026-05-01 12:00:00] production.ERROR: Base table not found {"exception":"[object] \
(Illuminate\\Database\\QueryException(code: 42S02): Base table not found at \
/var/www/vendor/laravel/framework/src/Illuminate/Database/Connection.php:712)
[stacktrace]
#0 /var/www/vendor/laravel/framework/src/Illuminate/Database/Connection.php(672): run()
#1 /var/www/app/Models/Order.php(20): Illuminate\\Database\\Model->find()
#2 {main}""",
    "ruby": """\
app/models/cart.rb:12:in `total': undefined method `price' for nil:NilClass (NoMethodError)
\tfrom app/controllers/carts_controller.rb:7:in `block in show'
\tfrom /usr/local/bundle/gems/actionpack-7.0.4/lib/action_controller/base.rb:6:in `send_action'""",
    "rails": """\
NoMethodError (undefined method `price' for nil:NilClass):

/usr/local/bundle/gems/activesupport-7.0.4/lib/active_support/callbacks.rb:6:in `run'
app/models/cart.rb:12:in `total'
app/controllers/carts_controller.rb:7:in `show'""",
    "dotnet": """\
Unhandled exception. System.InvalidOperationException: Sequence contains no elements
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Shop.Cart.CartService.Total(List`1 items) in C:\\build\\shop\\Cart\\CartService.cs:line 42
   at Shop.Program.<Main>$(String[] args) in C:\\build\\shop\\Program.cs:line 9""",
    "dotnet, inner": """\
System.AggregateException: One or more errors occurred.
 ---> System.IO.FileNotFoundException: Could not find file 'C:\\data\\prices.csv'.
   at System.IO.File.ReadAllText(String path)
   at Shop.Prices.Load(String path) in /src/Shop/Prices.cs:line 12
   --- End of inner exception stack trace ---
   at System.Threading.Tasks.Task.Wait()
   at Shop.Program.Main(String[] args) in /src/Shop/Program.cs:line 9""",
}
"""A trace by language."""
SHOWN = {
    "python": ["KeyError: 'sku' (at checkout in views.py)"],
    "python, caused": [
        "ProgrammingError: could not save (at checkout in views.py)",
        'UndefinedColumn: column "x" does not exist (at save in db.py)',
    ],
    "node": [
        "TypeError: Cannot read properties of undefined (reading 'amount') (at total in cart.js)"
    ],
    "browser": [
        'TypeError: can\'t access property "id", cart is undefined (at total in main.0.js)'
    ],
    "java": [
        "NestedServletException: Request failed (at CartController.pay in CartController.java)",
        "IllegalStateException: cart 4711 is empty (at CartService.checkout in CartService.java)",
    ],
    "kotlin": [
        (
            "UninitializedPropertyAccessException: lateinit property repo has not been initialized"
            " (at MainKt.main in Main.kt)"
        )
    ],
    "go": [
        (
            "panic: runtime error: invalid memory address or nil pointer dereference"
            " (at store.(*Store).Load in load.go)"
        )
    ],
    "rust": ["panic: index out of bounds: the len is 3 but the index is 99 (at cart.rs)"],
    "php": ["TypeError: Cart::add() needs a string (at Cart.php)"],
    "laravel": ["QueryException: Base table not found (at Order.php)"],
    "ruby": ["NoMethodError: undefined method `price' for nil:NilClass (at total in cart.rb)"],
    "rails": ["NoMethodError: undefined method `price' for nil:NilClass (at total in cart.rb)"],
    "dotnet": ["InvalidOperationException: Sequence contains no elements (at CartService.Total)"],
    "dotnet, inner": [
        "AggregateException: One or more errors occurred.",
        "FileNotFoundException: Could not find file 'C:\\data\\prices.csv'. (at Prices.Load)",
    ],
}


@pytest.mark.parametrize("language", TRACES)
def test_a_trace_is_condensed_to_its_exception_and_own_code(language: str) -> None:
    trace = TRACES[language]
    text = f"The shop fails since Monday:\n{trace}\n\nIt worked before."
    assert condense_traces(text).splitlines() == [
        "The shop fails since Monday:",
        *SHOWN[language],
        "",
        "It worked before.",
    ]


def elsewhere(trace: str) -> str:
    """Return the same trace from another machine, at a later commit."""
    for here, there in (
        *(("/home/ci/build/", "/builds/me/"), ("/srv/app/", "/app/"), ("/var/www/", "/srv/php/")),
        *(("C:\\build\\shop\\", "D:\\a\\"), (" /src/", " /home/me/"), ("\t/src/", "\t/home/me/")),
        ("3f2a1bc9", "77aa00cd1"),
        *(("41", "52"), (":12", ":24"), (":31", ":40"), ("4711", "23"), ("line 12", "line 77")),
        *(("the len is 3", "the len is 5"), (":88", ":91"), (".php:33", ".php:34")),
        *(("0x48e0a3", "0x51e0a3"), ("https://shop.example", "http://localhost:3000")),
    ):
        trace = trace.replace(here, there)
    return f"2026-05-01T10:00:00.123Z ERROR worker failed\n{trace}"


@pytest.mark.parametrize("language", TRACES)
def test_the_same_failure_has_the_same_signature_on_every_machine(language: str) -> None:
    trace = TRACES[language]
    assert elsewhere(trace) != trace
    stored = compute_stored_keys("The shop fails", trace)
    asked = compute_question_keys("Checkout is down", elsewhere(trace))
    assert len(asked.located) == 1
    assert set(asked.located) <= set(stored)
    # Whoever pastes only the line of the exception finds it, too.
    line = compute_question_keys("Checkout is down", find_error_line("", trace))
    assert line.located == ()
    assert set(line.unlocated) & set(stored)
    # A trace finds an entry that has only the line.
    stored_line = compute_stored_keys("The shop fails", find_error_line("", trace))
    assert set(asked.unlocated) & set(stored_line)


@pytest.mark.parametrize("language", TRACES)
def test_another_place_or_another_message_is_another_failure(language: str) -> None:
    stored = set(compute_stored_keys("The shop fails", TRACES[language]))
    for other, trace in TRACES.items():
        # Ruby and Rails show the same failure.
        if other == language or {other, language} == {"ruby", "rails"}:
            continue
        asked = compute_question_keys("Checkout is down", trace)
        assert not stored & {*asked.located, *asked.unlocated}, other
    moved = "".join(TRACES[language]).replace("total", "sum").replace("checkout", "pay")
    moved = moved.replace("in save", "in store")
    if moved != TRACES[language] and language not in {"rust", "php"}:
        assert not stored & set(compute_question_keys("Checkout is down", moved).located)


@pytest.mark.parametrize(
    "prefix",
    [
        *("2026-05-01T10:00:00.123456789Z stderr F ", "2026-05-01T10:00:00.1234567Z "),
        *("2026/05/01 10:00:00 ", "[2026-05-01 10:00:00 +0000] ", "web-1  | "),
        *("May  1 10:00:00 web1 shop[123]: ", "05-01 10:00:00.123  1234  1234 E AndroidRuntime: "),
    ],
)
@pytest.mark.parametrize("language", ["python", "python, caused", "java", "go", "node", "ruby"])
def test_the_prefix_of_a_logger_changes_nothing(prefix: str, language: str) -> None:
    trace = TRACES[language]
    logged = "\n".join(prefix + line for line in trace.splitlines())
    assert compute_question_keys("", logged) == compute_question_keys("", trace)
    assert condense_traces(logged) == condense_traces(trace)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            (
                "Traceback (most recent call last):\n"
                "  File \"a.py\", line 1, in first\n    x()\nKeyError: 'a'\n\n"
                "During handling of the above exception, another exception occurred:\n\n"
                "Traceback (most recent call last):\n"
                '  File "b.py", line 1, in second\n    x()\nValueError: no second value'
            ),
            "ValueError: no second value (at second in b.py)",
        ),
        (
            (
                "  + Exception Group Traceback (most recent call last):\n"
                '  |   File "/app/main.py", line 4, in run\n  |     async with tasks:\n'
                "  | ExceptionGroup: unhandled errors in a TaskGroup"
            ),
            "ExceptionGroup: unhandled errors in a TaskGroup (at run in main.py)",
        ),
        (
            (
                "    TypeError: price is undefined\n\n      10 | function total(items) {\n"
                "    > 11 |   return items[0].price\n         |                  ^\n\n"
                "      at total (src/cart.js:11:25)\n      at Object.<anonymous> (src/x.js:5:1)"
            ),
            "TypeError: price is undefined (at total in cart.js)",
        ),
        (
            (
                "     NoMethodError:\n       undefined method `price' for nil:NilClass\n"
                "     # ./app/models/cart.rb:12:in `total'"
            ),
            "NoMethodError: undefined method `price' for nil:NilClass (at total in cart.rb)",
        ),
        (
            (
                "2026/05/01 10:00:00 http: panic serving 127.0.0.1:34034: cart is empty\n"
                "goroutine 18 [running]:\nnet/http.(*conn).serve.func1()\n"
                "\t/usr/local/go/src/net/http/server.go:1868 +0xb9\n"
                "main.pick(...)\n\t/home/me/shop/main.go:14"
            ),
            "panic: cart is empty (at main.pick in main.go)",
        ),
        (
            (
                "java.lang.NullPointerException: null\n"
                "\tat com.shop.Cart.total(Cart.java:55) ~[classes!/:na]\n"
                "\tat jdk.internal.reflect.GeneratedMethodAccessor12.invoke(Unknown Source)"
            ),
            "NullPointerException (at Cart.total in Cart.java)",
        ),
        (
            (
                "System.NullReferenceException: Object reference not set.\n"
                "   at Shop.Cart.<TotalAsync>d__5.MoveNext() in /src/Cart.cs:line 3\n"
                "--- End of stack trace from previous location ---\n"
                "   at System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw()"
            ),
            "NullReferenceException: Object reference not set. (at Cart.TotalAsync)",
        ),
        (
            (
                "Error: could not load the cart\n    at load (/srv/src/cart.js:1:2) {\n"
                "  [cause]: Error: connect ECONNREFUSED 127.0.0.1:5432\n"
                "      at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1494:16)"
            ),
            (
                "Error: could not load the cart (at load in cart.js)\n"
                "Error: connect ECONNREFUSED 127.0.0.1:5432"
            ),
        ),
    ],
)
def test_other_forms_of_traces_are_read(text: str, shown: str) -> None:
    assert condense_traces(text) == shown


def test_files_of_one_name_in_other_folders_are_other_places() -> None:
    trace = TRACES["python"]
    other = trace.replace("/orders/", "/users/")
    stored = set(compute_stored_keys("", trace))
    assert not stored & set(compute_question_keys("", other).located)
    # Where the folder is that of the checkout, the two can be the same: nearness decides.
    assert stored & set(compute_question_keys("", other).unlocated)
    bare = trace.replace("/home/ci/build/shop/orders/", "")
    assert stored & set(compute_question_keys("", bare).unlocated)


def test_a_description_with_a_trace_has_the_signature_as_well() -> None:
    text = f"Checkout fails with\n{TRACES['python']}\nsince Monday."
    assert compute_question_keys(text, None) == compute_question_keys("", TRACES["python"])
    assert condense_prose(text) == "Checkout fails with\nKeyError: 'sku'\nsince Monday."
    assert condense_prose("Three retries within 30 s\nfail.") == "Three retries within 30 s\nfail."


def test_a_long_trace_is_searched_by_its_exception_alone() -> None:
    frames = "\n".join(
        f'  File "/app/module_{number}.py", line {number}, in step_{number}\n    step()'
        for number in range(100)
    )
    trace = f"Traceback (most recent call last):\n{frames}\nValueError: 17 is no colour"
    assert condense_errors(trace) == "ValueError: 0 is no colour"
    assert condense_traces(trace) == "ValueError: 17 is no colour (at step_0 in module_99.py)"
    escaped = trace.replace("\n", "\\n")
    assert compute_question_keys("", escaped) == compute_question_keys("", trace)


def test_only_lines_with_errors_of_a_log_are_searched() -> None:
    quiet = [f"2026-05-01 10:00:{number:02} INFO served request {number}" for number in range(50)]
    log = [*quiet, "2026-05-01 10:01:00,250 ERROR payment 77 was refused by host 10.0.0.7", *quiet]
    assert condense_errors("\n".join(log)) == "served request 0\npayment 0 was refused by host 0"
    pasted = "\n".join(["Payments fail since noon, 3 of 10:", *log, "Why?"])
    assert condense_prose(pasted) == (
        "Payments fail since noon, 3 of 10:\nWhy?\n"
        "served request 0\npayment 0 was refused by host 0"
    )
    noisy = [f"2026-05-01 10:00:00 INFO step {letter}" for letter in string.ascii_lowercase]
    assert condense_errors("\n".join([*noisy, log[50]])) == "payment 0 was refused by host 0"


@pytest.mark.parametrize(
    ("line", "template"),
    [
        ("TimeoutError: Timeout 30000ms exceeded.", "TimeoutError: Timeout 0ms exceeded."),
        ("cannot open /home/me/data/x1.csv at 0x7ffdeadbeef", "cannot open x1.csv at 0"),
        ("order 3f2504e0-4f89-11d3-9a0c-0305e82c3301 of user_42", "order 0 of user_0"),
        ("GET https://api.example/v1/orders/12?x=1 failed", "GET 0?x=0 failed"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 0"),
        ("at C:\\src\\shop\\cart.py:12", "at cart.py"),
        # Codes are what an error is.
        ("Request failed with status code 404", "Request failed with status code 404"),
        ("HTTP 503 from host 7", "HTTP 503 from host 0"),
        ("502 Bad Gateway", "502 Bad Gateway"),
        ("[Errno 13] Permission denied: '/tmp/a'", "[Errno 13] Permission denied: 'a'"),
        ("process exited with 137", "process exited with 137"),
        ("SQLSTATE[42P01]: undefined table", "SQLSTATE[42P01]: undefined table"),
    ],
)
def test_numbers_and_paths_are_normalized_and_codes_are_not(line: str, template: str) -> None:
    assert normalize_line(line) == template


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("src/main.c:12:5: error: implicit declaration of function 'foo'", None),
        ("src/cart.ts(3,5): error TS2322: Type 'string' is not assignable", None),
        ("error[E0382]: borrow of moved value: `cart`", None),
        ("ERROR:  canceling statement due to lock timeout", None),
        ("E       AssertionError: assert 1 == 2", "AssertionError: assert 1 == 2"),
        ("worker-1  | ValueError: 17 is no colour", "ValueError: 17 is no colour"),
    ],
)
def test_a_line_with_an_error_has_a_signature_without_a_trace(text: str, line: str | None) -> None:
    assert compute_stored_keys("", text)
    assert compute_question_keys("", text).located or compute_question_keys("", text).unlocated
    assert line is None or find_error_line("", text) == line


@pytest.mark.parametrize("text", ["Killed", "exit 1", "Error", "", "\n\n", "KeyError"])
def test_a_text_that_could_be_any_error_has_no_signature(text: str) -> None:
    assert compute_stored_keys("The build fails", text) == []
    asked = compute_question_keys("The build fails: why?", text)
    assert (asked.located, asked.unlocated) == ((), ())


LINES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
        st.sampled_from([line for trace in TRACES.values() for line in trace.splitlines()]),
    ),
    max_size=12,
).map("\n".join)


@given(LINES)
@settings(max_examples=40)
def test_any_text_can_be_read(text: str) -> None:
    traces = read_traces(text.splitlines())
    assert all(trace.chain and trace.first_line < trace.end_line for trace in traces)
    assert all(a.end_line <= b.first_line for a, b in pairwise(traces))
    assert not set(compute_stored_keys(text, None)) - set(compute_stored_keys(text, text))
    assert normalize_line(normalize_line(text)) is not None
    assert 'File "/home/ci' not in condense_errors(TRACES["python"] + "\n" + text)


@pytest.mark.parametrize(
    "line",
    [
        *("a" * 20_000, "a." * 10_000, "/a" * 10_000, "E" * 20_000, "a@b." * 5_000, "-" * 20_000),
        *("#1 " + "f(" * 9_000, " at " + "a.b(" * 5_000, "1: " * 6_000, "  at x\n" * 3_000),
    ],
)
def test_no_line_takes_long_to_read(line: str) -> None:
    begun = time.process_time()
    condense_errors(line)
    condense_traces(line)
    compute_stored_keys(line, line)
    assert time.process_time() - begun < 1.0
