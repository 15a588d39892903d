"""NESTFUL: programs whose arguments refer to earlier results and their fields, graded by the package's own tagger.

The functions behind its catalogues are remote services or don't exist, so results are stand-ins of the stated types;
what is graded is the program and the values that flow through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from dialects import Let, Program
from episodes.importers.base import Case, Inexpressible, InexpressibleError, need
from episodes.importers.nestful_amend import amend
from episodes.importers.nestful_bridges import Bridges
from episodes.importers.nestful_catalogue import Catalogue
from episodes.importers.nestful_judge import PACKAGE, Back, describing, execute, judge
from episodes.importers.nestful_programs import Translation
from registry import RecordType
from registry.schema import identifier

# Whether a part is executable, and its name: the arguments by which the package reads each of its three parts.
PARTS: Final[Mapping[str, tuple[bool, str | None]]] = {
    "executable": (True, None),
    "glaive": (False, "glaive"),
    "sgd": (False, "sgd"),
}


# Programs that share a registry: the tools that any of them calls. A whole catalogue has up to 64 tools and 560 fields,
# whose names together pass the limit of an automaton.
BATCH: Final = 12


Translated = tuple[Translation, Program, RecordType]


def called(program: Program) -> Iterator[str]:
    """The tools that a program calls."""
    yield from (step.call.tool for step in program.steps if isinstance(step, Let))


@dataclass(slots=True)
class Nestful:
    """Reads the three parts; with `bridged`, what the source converts or computes unsaid is written out."""

    bridged: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The suite's name, and whether programs are bridged."""
        return "nestful_bridged" if self.bridged else "nestful"

    def cases(self) -> Iterator[Case | Inexpressible]:
        """Every program of every part."""
        for part, (executable, name) in PARTS.items():
            handlers = need("nestful.data_handlers", PACKAGE)
            specs = {spec["name"]: spec for spec in handlers.read_raw_data("spec", executable, name)}
            data = handlers.read_raw_data("data", executable, name)
            yield from self._part(part, Catalogue(specs=specs), data, handlers.get_nestful_catalog(executable, name))

    def _part(self, part: str, catalogue: Catalogue, data: Any, packaged: Any) -> Iterator[Case | Inexpressible]:
        bridges = Bridges() if self.bridged else None
        if self.bridged:
            amend(catalogue, data)
        stated = describing(catalogue, None)
        shapes: dict[object, str] = {}
        made = [self._translated(Translation(registry=stated, bridges=bridges, shapes=shapes), item) for item in data]
        registry = describing(catalogue, bridges)
        self._note(catalogue, bridges)
        offered, types = registry, tuple[RecordType, ...]()
        for index, (item, found) in enumerate(zip(data, made, strict=True)):
            name = f"{part}.{index}"
            if index % BATCH == 0:
                batch = [other for other in made[index : index + BATCH] if not isinstance(other, InexpressibleError)]
                offered = registry.select(*dict.fromkeys(tool for _, program, _ in batch for tool in called(program)))
                types = tuple(dict.fromkeys(kind for _, _, kind in batch))
            if isinstance(found, InexpressibleError):
                yield Inexpressible(suite=self.name, name=name, reason=found.reason, detail=found.detail)
                continue
            translation, program, kind = found
            back = Back(
                registry=registry,
                specs=catalogue.specs,
                labels={identifier(step["label"]): step["label"] for step in item["output"] if step.get("label")},
                result=kind,
                origins=translation.origins,
            )
            yield Case(
                suite=self.name,
                name=name,
                prompts=(item["input"],),
                registry=offered,
                programs=(program,),
                output_types=(kind,),
                types=types,
                execute=partial(execute, catalogue, bridges, item, back, packaged),
                baseline=partial(judge, item["output"], item, packaged, {}),
                added=len(translation.origins),
            )

    def _translated(self, translation: Translation, item: Mapping[str, Any]) -> Translated | InexpressibleError:
        try:
            return (translation, *translation.program(item["output"]))
        except InexpressibleError as error:
            return error

    def _note(self, catalogue: Catalogue, bridges: Bridges | None) -> None:
        self.notes |= catalogue.notes
        for (tool, _, path), schema in catalogue.amended.items():
            self.notes[f"{tool}.{'.'.join(path)}"] = f"contradicted by its uses: amended to {dict(schema)}"
        for bridge in bridges.tools.values() if bridges else ():
            self.notes[bridge.signature] = "a bridge, written out where the source converts or computes unsaid"
