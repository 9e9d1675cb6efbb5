from benchmarks.quality_metrics import choose_harmless, choose_separating, measure_threshold
from rag_assets.quality.judgements import JudgedQuestion, Judgement
from tests.unit.quality.passages import Found

ANSWER, OTHER = (Found("a.md", text) for text in ("answer", "other"))
ASKED = JudgedQuestion(
    "asked", "paraphrase", "?", (Judgement("a.md", "answer"), Judgement("a.md", "part", 2))
)
UNANSWERED = JudgedQuestion("unanswered", "none", "?")


def test_threshold_is_chosen_by_kept_and_rejected_answers() -> None:
    answers = {
        -1.0: {"asked": [OTHER, ANSWER], "unanswered": [OTHER]},
        0.3: {"asked": [ANSWER], "unanswered": [OTHER]},
        0.5: {"asked": [ANSWER], "unanswered": []},
        0.7: {"asked": [], "unanswered": []},
    }
    curve = [
        measure_threshold(least, [ASKED, UNANSWERED], answer) for least, answer in answers.items()
    ]
    assert [(kept.answered, kept.rejected) for kept in curve] == [(1, 0), (1, 0), (1, 1), (0, 1)]
    assert choose_harmless(curve).min_score == choose_separating(curve).min_score == 0.5
