"""Score every fusion rule on every judged set, from stored ranked lists, within seconds.

    python -m benchmarks.fusion                 tables, and results/fusion.json
    python -m benchmarks.fusion --rules         the mean of every rule over all sets as well

For each set, the constants of a family of rules are chosen on the developed halves of all other
sets, and scored on the set's untouched half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from benchmarks.fusion.lists import load_sets
from benchmarks.fusion.rules import Array, Candidates, list_families
from benchmarks.measure import create_parser, save_result

_DEPTH: Final = 10
_RECALL_DEPTH: Final = 5
_DISCOUNTS: Final = 1 / np.log2(np.arange(2, _DEPTH + 2))

Scores = Mapping[str, Mapping[str, Sequence[Array]]]
"""nDCG@10 of every question, by family and rule, in the order of the sets."""


def main() -> None:
    """Score every rule, print tables, and save the result."""
    parser = create_parser(__doc__, name="fusion")
    parser.add_argument("--rules", action="store_true", help="print the mean of every rule")
    arguments = parser.parse_args()
    sets = [Candidates.from_set(listed) for listed in load_sets()]
    orders = {
        family: {
            name: [_rank_candidates(candidates, rule(candidates)) for candidates in sets]
            for name, rule in rules.items()
        }
        for family, rules in list_families().items()
    }
    scores = {
        family: {
            name: [
                _compute_ndcg(candidates, order)
                for candidates, order in zip(sets, of_sets, strict=True)
            ]
            for name, of_sets in rules.items()
        }
        for family, rules in orders.items()
    }
    chosen = {family: _choose_rules(rules, sets) for family, rules in scores.items()}
    rows = [
        {
            "set": candidates.listed_set.name,
            "kind": candidates.listed_set.kind,
            "language": candidates.listed_set.language,
            "questions": len(candidates.grades),
            "unread": round(float(candidates.listed_set.unread.mean()), 3),
            "rules": {
                family: {
                    "constants": names[at],
                    "ndcg": _compute_mean(scores[family][names[at]][at]),
                    "ndcg_untouched": _compute_mean(
                        scores[family][names[at]][at][candidates.listed_set.untouched]
                    ),
                    "recall": _compute_mean(
                        _compute_recall(candidates, orders[family][names[at]][at])
                    ),
                }
                for family, names in chosen.items()
            },
        }
        for at, candidates in enumerate(sets)
    ]
    if arguments.rules:
        for family, rules in scores.items():
            for name, of_sets in rules.items():
                print(f"{np.mean([of.mean() for of in of_sets]):.4f}  {family} {name}")
    _print_tables(rows)
    taken = datetime.now(UTC).strftime("%Y-%m-%d")
    print(save_result(arguments.name, {"benchmark": "fusion", "taken": taken, "sets": rows}))


def _rank_candidates(candidates: Candidates, scores: Array) -> Array:
    """Return the columns of the first ten candidates of each question."""
    existing = np.where(candidates.exists, scores, -np.inf)
    return np.argsort(-existing, axis=1, kind="stable")[:, :_DEPTH]


def _compute_ndcg(candidates: Candidates, order: Array) -> Array:
    """Return nDCG@10 by question, with the gains of rag_assets.quality."""
    gains = 2.0 ** np.take_along_axis(candidates.grades, order, axis=1) - 1
    ideal = np.array(
        [
            sum(
                (2.0**grade - 1) * discount
                for grade, discount in zip(
                    sorted(grades.values(), reverse=True), _DISCOUNTS, strict=False
                )
            )
            for grades in candidates.listed_set.grades
        ]
    )
    values: Array = (gains * _DISCOUNTS).sum(axis=1) / ideal
    return values


def _compute_recall(candidates: Candidates, order: Array) -> Array:
    """Return recall@5 by question; if more than five passages are judged, five are enough."""
    hits = (np.take_along_axis(candidates.grades, order[:, :_RECALL_DEPTH], axis=1) > 0).sum(axis=1)
    relevant_counts = np.array(
        [min(len(grades), _RECALL_DEPTH) for grades in candidates.listed_set.grades]
    )
    recall: Array = hits / relevant_counts
    return recall


def _choose_rules(rules: Mapping[str, Sequence[Array]], sets: Sequence[Candidates]) -> list[str]:
    """Return for each set the rule that does best on the developed halves of all others."""
    names = [*rules]
    means = np.array(
        [
            [
                of[~candidates.listed_set.untouched].mean()
                for of, candidates in zip(of_sets, sets, strict=True)
            ]
            for of_sets in rules.values()
        ]
    )
    return [
        names[int(np.delete(means, at, axis=1).mean(axis=1).argmax())] for at in range(len(sets))
    ]


def _compute_mean(values: Array) -> float:
    return round(float(values.mean()), 3)


def _print_tables(rows: Sequence[Mapping[str, Any]]) -> None:
    names = [*rows[0]["rules"]]
    for measure in ("ndcg", "ndcg_untouched", "recall"):
        print(f"\n{measure:<16}" + "".join(f"{name[:15]:>16}" for name in names))
        for row in rows:
            values = (row["rules"][name][measure] for name in names)
            print(f"{row['set']:<16}" + "".join(f"{value:16.3f}" for value in values))
        means = (np.mean([row["rules"][name][measure] for row in rows]) for name in names)
        print(f"{'mean':<16}" + "".join(f"{value:16.3f}" for value in means))


if __name__ == "__main__":
    main()
