"""JobFlows and JobTemplates are handled in the same five ways; this is each way, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import typer

from app.cli import documents, output
from app.cli.cluster import Cluster, Where, ask, namespace_for
from app.cli.each import each
from app.cli.endings import Code, CommandFailed
from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object, key_of, name

DetailForm = Literal["yaml", "json"]


@dataclass(frozen=True, slots=True)
class Family:
    """A kind and what it is called in messages."""

    resource: Resource
    word: str


def create(where: Where, family: Family, file: str) -> None:
    """Create what is in a file; the rest of it also where one is refused."""
    if not file:
        raise CommandFailed(Code.USAGE, "the path to a YAML file (--file or -f) is mandatory")
    items = documents.read(file, family.resource, namespace=namespace_for(where, None))

    async def make(cluster: Cluster, item: Object) -> None:
        made = await cluster.create(family.resource, item)
        typer.echo(f"Created {family.resource.kind}: {key_of(made)}")

    ask(where, lambda cluster: each(items, partial(make, cluster), name))


def show_all(
    where: Where, family: Family, namespace: str, *, form: output.Form, table: output.Table
) -> None:
    """List those of a namespace, or of all."""
    found = ask(where, lambda cluster: cluster.list(family.resource, namespace=namespace))
    text = output.listed(found, form=form, resource=family.resource, table=table)
    typer.echo(text, nl=False)


def show_one(
    where: Where, family: Family, key: Key, *, form: output.Form, table: output.Table
) -> None:
    """Show one in a line."""
    if not key.name:
        why = f"name is mandatory to get the particular {family.word} details"
        raise CommandFailed(Code.USAGE, why)
    found = ask(where, lambda cluster: cluster.get(family.resource, key))
    text = output.first([found], form=form, resource=family.resource, table=table)
    typer.echo(text, nl=False)


def describe(where: Where, family: Family, key: Key, *, form: DetailForm) -> None:
    """Show one in full, or all of the namespace when none is named."""

    async def look(cluster: Cluster) -> Sequence[Object]:
        if key.name:
            return [await cluster.get(family.resource, key)]
        return await cluster.list(family.resource, namespace=key.namespace)

    separator = "---\n" if form == "yaml" else ""
    texts = [output.document(item, form) for item in ask(where, look)]
    if not texts:
        typer.echo(output.EMPTY, nl=False, err=True)  # readers of documents get none
    typer.echo(separator.join(texts), nl=False)


def delete(where: Where, family: Family, key: Key, *, file: str) -> None:
    """Delete one, or what is in a file; the rest of a file is deleted although one is missing."""
    if not (key.name or file):
        raise CommandFailed(Code.USAGE, f"{family.word} name must be specified")
    keys = [key]
    if file:
        items = documents.read(file, family.resource, namespace=key.namespace)
        keys = [key_of(item) for item in items]

    async def remove(cluster: Cluster, each: Key) -> None:
        await cluster.delete(family.resource, each)
        typer.echo(f"Deleted {family.resource.kind}: {each}")

    ask(where, lambda cluster: each(keys, partial(remove, cluster), lambda key: key.name))
