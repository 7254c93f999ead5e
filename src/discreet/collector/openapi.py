"""The OpenAPI description of the service, as it is served and tested against."""

from __future__ import annotations

from collections.abc import Mapping

from discreet import __version__
from discreet.collector import limits
from discreet.collector.problems import ESTIMATE, REFUSALS, UPLOAD, Json, list_refusals
from discreet.collector.store import KEEPS
from discreet.device import wire
from discreet.estimates.table import COLUMNS
from discreet.estimates.views import VIEWS

_TEXT: dict[str, Json] = {"type": "string"}
_NUMBER: dict[str, Json] = {"type": "number"}
_COUNT: dict[str, Json] = {"type": "integer", "minimum": 0}
_MAYBE: dict[str, Json] = {"type": ["number", "null"]}
_FINGERPRINT: dict[str, Json] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NAME: dict[str, Json] = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The collection's name.",
    "schema": {"type": "string", "minLength": 1, "maxLength": limits.NAME},
}


def _object(properties: Mapping[str, Json], **more: Json) -> dict[str, Json]:
    return {"type": "object", "required": list(properties), "properties": properties, **more}


def _list(items: Json) -> dict[str, Json]:
    return {"type": "array", "items": items}


def _body(schema: str, description: str, media_type: str = "application/json") -> Json:
    return {
        "description": description,
        "content": {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


def _problems(*reasons: str) -> dict[str, Json]:
    """The responses for these reasons to refuse, by status."""
    meanings: dict[int, list[str]] = {}
    for status, meaning, _ in (REFUSALS[reason] for reason in reasons if reason != "unexpected"):
        if meaning not in meanings.setdefault(status, []):
            meanings[status].append(meaning)
    return {
        str(status): _body("Problem", " ".join(texts), "application/problem+json")
        for status, texts in sorted(meanings.items())
    }


_BRIEF: dict[str, Json] = {
    "name": _TEXT,
    "title": _TEXT,
    "questions": {"type": "integer", "minimum": 1},
    "answers": {"type": "integer", "minimum": 1},
    "state": {"enum": ["upcoming", "open", "closed"]},
    "rehearsal": {"type": "boolean"},
    "fingerprint": _FINGERPRINT,
}
_ROW = _object({"item": _TEXT, "level": _TEXT, **dict.fromkeys(COLUMNS[2:], _MAYBE)})
_ROW["description"] = "A row of the table; every view adds its columns."
_ROW["additionalProperties"] = _MAYBE
_ESTIMATED: dict[str, Json] = {
    "n": _COUNT,
    "items": _list(_ROW),
    "totals": _list(_ROW),
    "note": _TEXT,
    "telling": {
        "type": "integer",
        "minimum": 0,
        "description": "Items whose simultaneous 95 % interval is above zero.",
    },
    "visible": {
        **_MAYBE,
        "description": "The smallest share that so many reports will probably (4 times in 5) tell "
        "from chance, of an item of the level that is counted best; null where they tell nothing.",
    },
    "sure": _list(_TEXT),
    "margins": _list(_object({"question": _TEXT, "items": _list(_ROW)})),
    "views": _list(_object({"name": {"enum": list(VIEWS)}, "about": _TEXT})),
}
_QUESTION: dict[str, Json] = {
    "name": _TEXT,
    "question": _TEXT,
    "of": _list(_TEXT),
    "kind": {"enum": ["single", "set", "each"]},
    "items": {"type": "integer", "minimum": 1},
    "report_bytes": {"type": "integer", "minimum": 1},
    "certificate": _TEXT,
    "levels": _list(
        _object(
            {
                "name": _TEXT,
                "epsilon": _TEXT,
                "acts_as": _MAYBE,
                "items": _COUNT,
                "factor": _MAYBE,
            }
        )
    ),
}

DOCUMENT: dict[str, Json] = {
    "openapi": "3.1.0",
    "info": {
        "title": "discreet collector",
        "version": __version__,
        "summary": "Counts perturbed reports; receives nothing else.",
        "description": "The organiser's desk (/desk) is a page. The endpoints below it are for "
        "that page alone. They need its session, may change, and are not described here.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    },
    "paths": {
        "/healthz": {
            "get": {
                "operationId": "health",
                "summary": "Whether the service and its store work.",
                "responses": {"200": _body("Health", "They do."), **_problems("store")},
            }
        },
        "/readyz": {
            "get": {
                "operationId": "ready",
                "summary": "Whether a report can be counted now: the store takes a write.",
                "responses": {"200": _body("Health", "It can."), **_problems("store")},
            }
        },
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "summary": "Counters in the format of Prometheus.",
                "security": [{"organiser": []}],
                "responses": {
                    "200": {
                        "description": "Counters.",
                        "content": {"text/plain": {"schema": _TEXT}},
                    },
                    **_problems("token"),
                },
            }
        },
        wire.COLLECTIONS: {
            "get": {
                "operationId": "collections",
                "summary": "All collections.",
                "responses": {
                    "200": _body("Collections", "All collections."),
                    **_problems("store"),
                },
            }
        },
        wire.COLLECTIONS + "/{name}": {
            "parameters": [_NAME],
            "get": {
                "operationId": "collection",
                "summary": "A collection: its questions, guarantee, and the survey's file.",
                "responses": {
                    "200": _body("Collection", "The collection."),
                    **_problems("unknown", "store"),
                },
            },
        },
        wire.COLLECTIONS + "/{name}/reports": {
            "parameters": [_NAME],
            "post": {
                "operationId": "report",
                "summary": "Send one or many reports; answered once they are durable. "
                "The same id is counted once.",
                "parameters": [
                    {
                        "name": wire.HEADER,
                        "in": "header",
                        "required": True,
                        "description": "The fingerprint of the survey.",
                        "schema": _FINGERPRINT,
                    }
                ],
                "requestBody": {
                    "required": True,
                    "description": "Frames: an id of 16 random bytes; the question's number where "
                    "there are several, and every public answer, a byte each; the report.",
                    "content": {wire.BINARY: {"schema": {"type": "string", "format": "binary"}}},
                },
                "responses": {
                    "200": _body("Receipt", "Counted."),
                    **_problems(*list_refusals(UPLOAD)),
                },
            },
        },
        wire.COLLECTIONS + "/{name}/estimate": {
            "parameters": [_NAME],
            "get": {
                "operationId": "estimate",
                "summary": "Counts of people with their errors. "
                "For the organiser, unless the results are open.",
                "description": "Without the token, every table is a sum of batches. A batch has at "
                "least `step` reports on one question, and no report is in two of them. While the "
                "collection is open, batches are of one group by all public questions together; "
                "in the end, what is left is added up by one public question, and then over all "
                "groups. So every question and every `by` can be asked for; `n` says how many "
                "reports a table counts. A parameter that is given more than once is refused; `by` "
                "may be repeated with different names.",
                "security": [{"organiser": []}, {}],
                "parameters": [
                    {
                        "name": "views",
                        "in": "query",
                        "style": "form",
                        "explode": False,
                        "schema": _list({"enum": list(VIEWS)}),
                        "description": "; ".join(f"{k}: {v.about}" for k, v in VIEWS.items()),
                    },
                    {
                        "name": "confidence",
                        "in": "query",
                        "schema": {
                            "type": "number",
                            "minimum": limits.CONFIDENCE[0],
                            "maximum": limits.CONFIDENCE[1],
                        },
                        "description": "Of the intervals; 0.95 by default.",
                    },
                    {"name": "format", "in": "query", "schema": {"enum": ["json", "csv"]}},
                    {
                        "name": "explained",
                        "in": "query",
                        "schema": {"type": "boolean"},
                        "description": "For csv: lines that begin with # and explain the columns "
                        "stand in front. False by default. JSON is the same either way.",
                    },
                    {
                        "name": "question",
                        "in": "query",
                        "schema": _TEXT,
                        "description": "The name of a question; the first by default.",
                    },
                    {
                        "name": "by",
                        "in": "query",
                        "style": "form",
                        "explode": True,
                        "schema": _list(_TEXT),
                        "description": "Public questions to count by: none, some or all, "
                        "also without the token.",
                    },
                ],
                "responses": {
                    "200": {
                        "description": "The estimate.",
                        "content": {
                            "application/json": {
                                "schema": {"$ref": "#/components/schemas/Estimate"}
                            },
                            "text/csv": {"schema": _TEXT},
                        },
                    },
                    **_problems(*list_refusals(ESTIMATE)),
                },
            },
        },
    },
    "components": {
        "securitySchemes": {
            "organiser": {
                "type": "http",
                "scheme": "bearer",
                "description": "The organiser's token.",
            }
        },
        "schemas": {
            "Health": _object({"status": {"const": "ok"}}),
            "Problem": _object(
                {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
                description="RFC 9457; `index` is the first frame that was refused.",
            ),
            "Receipt": _object({"accepted": _COUNT, "duplicates": _COUNT}),
            "Collections": {
                "type": "object",
                "required": ["collections"],
                "properties": {
                    "collections": _list(_object(_BRIEF)),
                    "unreadable": {
                        **_list(_TEXT),
                        "description": "Names of damaged collections, if any.",
                    },
                },
            },
            "Collection": _object(
                {
                    **_BRIEF,
                    "keeps": {"enum": list(KEEPS)},
                    "open_results": {"type": "boolean"},
                    "least": _COUNT,
                    "step": {**_COUNT, "description": "Reports in a batch of results, at least."},
                    "asked": _list(_object(_QUESTION)),
                    "guarantee": _object(
                        {
                            "holds": {"const": True},
                            "caution": _TEXT,
                            "ldp_epsilon": _MAYBE,
                            "sentences": _list(_TEXT),
                        }
                    ),
                    "survey": {
                        "type": "object",
                        "description": "The survey's file; verify it with `discreet check`.",
                    },
                }
            ),
            "Estimate": _object(
                {
                    **_BRIEF,
                    **_ESTIMATED,
                    "ordered": {"type": "boolean"},
                    "question": {"type": "string", "description": "The name of the question."},
                    "asked": _list(
                        _object({"name": _TEXT, "question": _TEXT, "of": _list(_TEXT), "n": _COUNT})
                    ),
                    "public": _list(_object({"name": _TEXT, "text": _TEXT, "items": _list(_TEXT)})),
                    "by": _list(_TEXT),
                    "language": {"type": "string", "description": "Of the survey's own words."},
                    "translations": {
                        "type": "object",
                        "description": "Its words in other languages, as in its file.",
                    },
                    "groups": _list(
                        _object(
                            {
                                "group": {"type": "object", "additionalProperties": _TEXT},
                                "hidden": {
                                    "type": "boolean",
                                    "description": "Too few reports to be shown, or none.",
                                },
                                **_ESTIMATED,
                            }
                        )
                    ),
                    "published": _TEXT,
                    "about": {"const": "population"},
                    "confidence": _NUMBER,
                    "levels": _list(
                        _object(
                            {
                                "name": _TEXT,
                                "epsilon": _TEXT,
                                "acts_as": _MAYBE,
                                "expected_stderr": _NUMBER,
                                "plain_stderr": _NUMBER,
                            }
                        )
                    ),
                    "plain_model": _TEXT,
                    "common": _NUMBER,
                    "needed": {
                        "type": ["integer", "null"],
                        "description": "Reports that show an item that a share of `common` has.",
                    },
                    "certificate": _TEXT,
                    "fake": _TEXT,
                    "odd": _list(_TEXT),
                    "history": _list(_object({"time": _TEXT, "what": _TEXT})),
                    "least": _COUNT,
                }
            ),
        },
    },
}
