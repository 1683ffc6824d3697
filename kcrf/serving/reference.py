"""The page that describes the paths of a server, made of its OpenAPI document. It needs no network."""

import json
import re
from html import escape

__all__ = ["reference_page"]

_EXAMPLE = {"texts": ["今天天气真好。"]}
_LIMITS = {"maxItems": "at most", "minimum": "at least", "maximum": "at most"}


def reference_page(document):
    """The HTML of an OpenAPI document, a dict."""
    schemas = document.get("components", {}).get("schemas", {})
    sections = [
        _section(path, method, operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>kcrf: paths</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="page.css"></head><body><main>'
        f"<h1>kcrf <small>{escape(document['info']['version'])}</small></h1>"
        '<p class="soft">JSON in, JSON out. For programs: <a href="openapi.json">openapi.json</a>. '
        'To try it: <a href="./">the page to type in</a>.</p>'
        f"{''.join(sections)}</main></body></html>"
    )


def _section(path, method, operation, schemas):
    """A path, what it takes and what it answers."""
    parts = [f"<section><h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"]
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        example = json.dumps(_EXAMPLE, ensure_ascii=False)
        parts.append(f"<pre>curl localhost:8000{escape(path)} --json '{escape(example, quote=False)}'</pre>")
        parts += ["<h3>Request</h3>", _table(_resolved(schema, schemas), schemas)]
    answers = dict(operation["responses"])
    schema = answers.pop("200").get("content", {}).get("application/json", {}).get("schema", {})
    if schema:
        parts += ["<h3>Answer</h3>", _table(_resolved(schema, schemas), schemas)]
    if answers:
        rows = [(status, answer["description"]) for status, answer in answers.items()]
        parts.append("<h3>Otherwise <small>an object with the reason in <code>error</code></small></h3>")
        parts.append(_in_table(f"<tr><td>{escape(status)}</td><td>{_prose(about)}</td></tr>" for status, about in rows))
    return "".join([*parts, "</section>"])


def _resolved(schema, schemas):
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _table(schema, schemas):
    """The members of an object, those of objects inside it indented."""
    return _in_table(_rows(schema, schemas, 0))


def _prose(text):
    """The HTML of a sentence, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _in_table(rows):
    return f'<div class="wide"><table>{"".join(rows)}</table></div>'


def _rows(schema, schemas, depth):
    for name, member in schema.get("properties", {}).items():
        about = member.get("description", "")
        if "default" in member and member["default"] is not None:
            about = f"{about} Default: {member['default']}."
        limits = [f"{words} {int(member[key]):,}" for key, words in _LIMITS.items() if key in member]
        about = " ".join([about, *([f"{', '.join(limits).capitalize()}."] if limits else [])])
        yield (
            f'<tr><td class="depth-{depth}"><code>{escape(name)}</code></td><td>{escape(_kind(member, schemas))}</td>'
            f"<td>{_prose(about)}</td></tr>"
        )
        for inner in _objects(member, schemas):
            yield from _rows(inner, schemas, depth + 1)


def _kind(member, schemas):
    """The type of a member in words, as "list of string of at most 10,000 characters"."""
    if "anyOf" in member:
        return " or ".join(_kind(item, schemas) for item in member["anyOf"])
    if "$ref" in member:
        return "object"
    if member.get("type") == "array":
        return f"list of {_kind(member['items'], schemas)}"
    length = f" of at most {member['maxLength']:,} characters" if "maxLength" in member else ""
    return member.get("type", "any") + length


def _objects(member, schemas):
    """The schemas of the objects in a member."""
    if "$ref" in member:
        yield _resolved(member, schemas)
    for inner in [*member.get("anyOf", ()), *([member["items"]] if "items" in member else [])]:
        yield from _objects(inner, schemas)
