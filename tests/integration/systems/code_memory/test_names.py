"""Questions that consist of names: exact definitions lead, unknown names are reported."""

from __future__ import annotations

import pytest

from rag_assets.search.model import SearchAnswer, SearchRequest
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.found_relations import Readable
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

TENANT = "exact-names"
FILES = {
    **{
        f"app/Http/Controllers/Part{number}Controller.php": (
            f"<?php\nnamespace App\\Http\\Controllers;\nclass Part{number}Controller\n{{\n"
            f"    public function store() {{ return {number}; }}\n"
            f"    public function show() {{ return view('part{number}'); }}\n}}\n"
        )
        for number in range(60)
    },
    "app/Models/Comment.php": (
        "<?php\nnamespace App\\Models;\n"
        "class Comment extends \\Illuminate\\Database\\Eloquent\\Model\n{\n"
        "    public function createFromInput(array $input) { return $this->fill($input); }\n}\n"
    ),
    "app/Comments/CommentRepo.php": (
        "<?php\nnamespace App\\Comments;\nclass CommentRepo\n{\n"
        "    public function create(array $input) { return (new \\App\\Models\\Comment)"
        "->createFromInput($input); }\n}\n"
    ),
    "src/tree_builder.py": (
        "class TreeBuilder:\n    def build_tree(self, comments):\n        return sorted(comments)\n"
    ),
    "lib/comment_mailer.rb": (
        "module Mail\n  class CommentMailer < ApplicationMailer\n"
        "    def reply_notice(comment)\n"
        "      mail to: comment.author\n    end\n\n"
        "    def self.digest\n      new.deliver\n    end\n"
        "  end\nend\n"
    ),
    "lib/ledger.rb": (
        "class Ledger\n  def close\n  end\n\n  def close!\n  end\n\n  def close?\n  end\n\n"
        "  def _close=(value)\n  end\n\n  def close_all\n  end\nend\n"
    ),
    "src/moderation.py": "class Moderation:\n"
    + "".join(
        f"    def review_{number}(self, comment):\n"
        + "".join(f"        comment.mark('{number}-{line}')\n" for line in range(40))
        + "\n"
        for number in range(10)
    ),
    **{
        f"src/queue_{number}.py": "from src.moderation import Moderation\n\n\n"
        f"def run_queue_{number}(comment):\n    return Moderation().review_{number}(comment)\n"
        for number in range(6)
    },
    "web/thread.ts": "export function renderThread(x: number) { return `${x}` }\n",
    "README.md": "# Comments\n\nComments are stored by the repository, and read as a tree.\n",
}


@pytest.fixture(scope="module")
def installation(shared_installation: Installation, driver: Driver) -> Installation:
    made = MadeRepository(shared_installation.home.parent / "sources" / TENANT)
    made.commit(FILES)
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[{"name": "repo", "type": "git", "root": str(made.root), "ref": "HEAD"}],
    )
    driver.sync(TENANT)
    return shared_installation


def ask(installation: Installation, query: str, **options: object) -> SearchAnswer:
    return installation.retriever.search(TENANT, SearchRequest.of(query=query, **options))


def test_a_name_with_more_definitions_than_a_walk_begins_at_is_answered(
    installation: Installation,
) -> None:
    for query in ("store", "which table does `store` touch", "Who calls show() and store()?"):
        assert ask(installation, query).hits
    first = ask(installation, "store").hits[0]
    assert (first.symbol or "").endswith("::store")


@pytest.mark.parametrize(
    ("query", "path", "symbol"),
    [
        ("CommentRepo", "app/Comments/CommentRepo.php", "CommentRepo"),
        ("App\\Comments\\CommentRepo", "app/Comments/CommentRepo.php", "CommentRepo"),
        ("CommentRepo::create", "app/Comments/CommentRepo.php", "create"),
        ("CommentRepo.create", "app/Comments/CommentRepo.php", "create"),
        ("CommentRepo#create", "app/Comments/CommentRepo.php", "create"),
        ("CommentRepo@create()", "app/Comments/CommentRepo.php", "create"),
        ("createFromInput", "app/Models/Comment.php", "createFromInput"),
        ("create_from_input", "app/Models/Comment.php", "createFromInput"),
        ("comment", "app/Models/Comment.php", "Comment"),
        ("build_tree", "src/tree_builder.py", "build_tree"),
        ("TreeBuilder.build_tree", "src/tree_builder.py", "build_tree"),
        ("renderThread", "web/thread.ts", "renderThread"),
        ("thread.ts", "web/thread.ts", ""),
        ("CommentRepo.php", "app/Comments/CommentRepo.php", ""),
        ("web/thread.ts", "web/thread.ts", ""),
        ("CommentMailer", "lib/comment_mailer.rb", "CommentMailer"),
        ("reply_notice", "lib/comment_mailer.rb", "reply_notice"),
        ("CommentMailer#reply_notice", "lib/comment_mailer.rb", "reply_notice"),
        ("Mail::CommentMailer.digest", "lib/comment_mailer.rb", "digest"),
    ],
)
def test_an_exact_identifier_leads(
    installation: Installation, query: str, path: str, symbol: str
) -> None:
    first = ask(installation, query).hits[0]
    assert first.uri == f"repo/{path}"
    # A small class and its methods are one passage.
    assert symbol in first.text


def test_a_large_class_leaves_room_for_its_users(installation: Installation) -> None:
    hits = ask(installation, "Which queues use the reviews of `Moderation`?").hits
    files = [hit.uri for hit in hits[:8]]
    assert files.count("repo/src/moderation.py") == 2
    assert sum(uri.startswith("repo/src/queue_") for uri in files) >= 5


@pytest.mark.parametrize(
    ("name", "first"),
    [("close!", "close!"), ("Close", "close"), ("_close=", "close="), ("CLOSE?", "close?")],
)
def test_definitions_by_their_last_part_begin_with_the_same_marks(
    installation: Installation, name: str, first: str
) -> None:
    catalog = installation.session().catalog
    serving = catalog.generations.serving(TENANT)
    assert serving is not None
    relations = get_code_catalog(catalog).relations.select_readable(
        Readable(TENANT, serving.number, ("staff",))
    )
    found = [one.name.rpartition("::")[2] for one in relations.find_by_last_part(name, 10)]
    assert found[0].replace("_", "") == first
    assert sorted(found) == ["_close=", "close", "close!", "close?"]


@pytest.mark.parametrize(
    "query", ["FlurbController@quantize", "quantize_flurbs", "CommentRepo::quux"]
)
def test_a_symbol_in_no_file_is_reported_as_unknown(installation: Installation, query: str) -> None:
    answer = ask(installation, query)
    assert answer.hits == ()
    assert answer.needs_clarification
    assert answer.clarification is not None
    assert query in answer.clarification.question
    assert [warning.field for warning in answer.warnings] == ["query"]


def test_an_unknown_name_in_a_sentence_is_reported_with_the_hits(
    installation: Installation,
) -> None:
    answer = ask(installation, "How does CommentRepo use FlurbController for comments?")
    assert answer.hits
    [warning] = answer.warnings
    assert "FlurbController" in warning.problem


def test_relations_do_not_answer_alone_where_a_name_of_the_question_is_unknown(
    installation: Installation,
) -> None:
    known = ask(installation, "What does `CommentRepo` call?")
    assert known.debug is not None
    assert known.debug.strategy == "walk"
    other = ask(installation, "What do `CommentRepo` and `sorted_tree` call?")
    assert other.debug is not None
    assert other.debug.strategy != "walk"
    assert len(other.hits) > len(known.hits)


def test_the_nearest_names_of_an_unknown_name_are_shown(installation: Installation) -> None:
    answer = ask(installation, "CommentsRepo")
    assert answer.clarification is not None
    assert "CommentRepo" in answer.clarification.names


def test_an_unknown_route_name_is_reported(installation: Installation) -> None:
    answer = ask(installation, "how are comments stored", route_name="flurbs.quantize")
    assert answer.hits == ()
    assert [warning.field for warning in answer.warnings] == ["route_name"]


def test_words_that_occur_in_no_file_have_no_hits(installation: Installation) -> None:
    answer = ask(installation, "wibbly zxqv flompf")
    assert answer.hits == ()
    assert answer.needs_clarification


def test_a_threshold_of_the_request_holds_for_what_a_walk_brings(
    installation: Installation,
) -> None:
    answer = ask(installation, "What does CommentRepo call?", min_score=0.99)
    assert all((hit.cosine or 0) >= 0.99 for hit in answer.hits)
