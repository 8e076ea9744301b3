"""Sums of the decisions in a store: the database adds up those that are counted alike."""

from functools import lru_cache

import orjson
from sqlalchemy import Connection, case, func, select

from webhook.audit.decision import REPAIR, DecisionGroup, Effect
from webhook.audit.filters import Filter
from webhook.audit.matching import NO_EFFECTS, matching, to_moment
from webhook.audit.summary import MINUTE, Summary, fitting_step
from webhook.audit.tables import SECOND, decisions, group_columns
from webhook.rules.choices import Enforcement, Level


def summarise(db: Connection, wanted: Filter) -> Summary:
    """Sum up the decisions that match."""
    at, matches = decisions.c.at, matching(db, wanted)
    counted = select(*group_columns, func.count(), func.min(at), func.max(at)).where(matches).group_by(*group_columns)
    groups = db.execute(counted).all()
    if not groups:
        return Summary.every(MINUTE)
    first, last = to_moment(min(row[-2] for row in groups)), to_moment(max(row[-1] for row in groups))
    summary = Summary.every(fitting_step(first, last))
    summary.first, summary.last = first, last
    for *values, count, _, _ in groups:
        group = DecisionGroup(*values)
        enforcement, effects = Enforcement(group.enforcement), _effects(str(group.effects))
        summary.count(group._replace(enforcement=enforcement, effects=effects), count)
    _count_over_time(db, wanted, summary)
    return summary


def _count_over_time(db: Connection, wanted: Filter, summary: Summary) -> None:
    each, length = decisions.c, summary.outcomes.step * SECOND
    columns = {
        "step": each.at // length,
        "endpoint": each.endpoint,
        "word": each.word,
        "allowed": each.allowed,
        "namespace": case((each.allowed, ""), else_=each.namespace),
        "effects": case((each.allowed, NO_EFFECTS), else_=each.effects),
    }
    selected = select(*[column.label(name) for name, column in columns.items()]).where(matching(db, wanted)).subquery()
    rows = db.execute(select(selected, func.count()).group_by(*selected.c))
    for step, endpoint, word, allowed, namespace, effects, count in rows:
        at = to_moment(step * length)
        summary.outcomes.add(word, at, count)
        if endpoint == "validate":
            summary.validated.add(word, at, count)
        if not allowed:
            summary.refusals_in.add(namespace, at, count)
            for rule, effect in _effects(effects):
                if effect is Level.DENY:
                    summary.refusals_of.add(rule, at, count)


@lru_cache(maxsize=1024)
def _effects(spelled: str) -> tuple[tuple[str, Effect], ...]:
    return tuple([(rule, REPAIR if effect == REPAIR else Level(effect)) for rule, effect in orjson.loads(spelled)])
