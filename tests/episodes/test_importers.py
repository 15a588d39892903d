"""Importers of outside suites: on stand-ins of their packages always, on the packages themselves where installed."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from dialects import DIALECTS, Let, Reference, Return, by_name
from episodes import SuiteError, run_program
from episodes.importers.agentdojo import AgentDojo
from episodes.importers.base import Case, Graded, Inexpressible, InexpressibleError, Reason, express, need
from episodes.importers.bfcl import Bfcl, call_text, json_schema
from episodes.importers.command import main
from episodes.importers.corruptions import Corruption, Variation, corrupt, places, vary
from episodes.importers.gold import Lowerings, accept
from episodes.importers.nestful import Nestful
from episodes.importers.nestful_amend import amend
from episodes.importers.nestful_bridges import Bridges
from episodes.importers.nestful_catalogue import Catalogue
from episodes.importers.nestful_judge import Back, describing
from episodes.importers.nestful_programs import Translation
from episodes.importers.stand_ins import stand_in
from episodes.importers.suites import SUITES, importer
from registry import type_from_schema
from registry.types import DATE, FLOAT, INT, STRING, EnumType, HandleType, ListType, RecordType
from tests.episodes import fakes

CARS: dict[str, Any] = {
    "Cars.Find": {
        "name": "Cars.Find",
        "query_parameters": {
            "city": {"type": "string", "required": True},
            "from": {"description": "no type", "required": False, "allowed_values": ["a"]},
            "page": {"type": "string"},
        },
        "output_parameters": {
            "car id": {"type": "string"},
            "price": {"type": "float"},
            "seats": {"type": "array"},
            "owner": {"type": "object", "properties": {"name": "string"}},
            "photo": {"type": "file"},
            "extras": {"type": "object"},
        },
    },
    "Cars.Rent": {
        "name": "Cars.Rent",
        "query_parameters": {
            "car": {"type": "string", "required": True},
            "note": {"type": "string"},
            "days": {"type": "number", "required": True},
            "fast": {"type": "boolean"},
        },
        "output_parameters": {"total": {"type": "integer"}},
    },
}


def find(**arguments: Any) -> dict[str, Any]:
    return {"name": "Cars.Find", "arguments": {"city": "Rome", **arguments}, "label": "var1"}


def rent(**arguments: Any) -> dict[str, Any]:
    return {"name": "Cars.Rent", "arguments": {"car": "$var1.car id$", "days": 2, **arguments}, "label": "var2"}


def result(**arguments: Any) -> dict[str, Any]:
    return {"name": "var_result", "arguments": arguments or {"car": "$var1$", "total": "$var2.total$"}}


def test_a_missing_package_says_how_to_install_it() -> None:
    with pytest.raises(SuiteError, match="pip install no-such-package"):
        need("no_such_package_at_all", "no-such-package")


def test_every_suite_has_an_importer_of_its_name() -> None:
    assert all(importer(name).name.startswith(name) for name in SUITES)
    with pytest.raises(SuiteError, match="did you mean 'bfcl_base'"):
        importer("bfcl_bse")


EXPRESSED = [
    ("a", EnumType(name="e", members=("a", "b")), True),
    ("c", EnumType(name="e", members=("a", "b")), False),
    (1, FLOAT, True),
    (True, INT, False),
    ([1, 2], ListType(INT), True),
    ("ab", ListType(STRING), False),
    ("2024-02-29", DATE, True),
    ("2023-02-29", DATE, False),
    ("x", HandleType(name="h", python_type=object), False),
]


@pytest.mark.parametrize(("data", "kind", "can"), EXPRESSED)
def test_data_is_a_literal_of_its_type_or_inexpressible(data: object, kind: Any, can: bool) -> None:
    if can:
        express(data, kind, "here")
    else:
        with pytest.raises(InexpressibleError, match="here"):
            express(data, kind, "here")


# AgentDojo


def test_agentdojo_types_tools_executes_and_asks_its_grader(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.agentdojo(monkeypatch)
    reader = AgentDojo()
    case, other = reader.cases()
    assert isinstance(case, Case) and isinstance(other, Inexpressible)
    assert other.reason is Reason.LITERAL_TYPE
    assert case.registry["list_notes"].signature == "list_notes() -> list[Note]"
    assert case.registry["star"].signature == (
        "star(note_id: string, stars: float, reason?: optional[string]) -> nothing"
    )
    note = case.registry["list_notes"].returns.item  # type: ignore[union-attr]
    assert isinstance(note, RecordType)
    assert [part.type.name for part in note.fields] == ["string", "string", "datetime", "Note_tags", "int"]
    assert set(reader.notes) == {"nothing", "datetime", "Note_tags"}
    assert case.execute(case.programs).passed
    assert not case.execute([type(case.programs[0])(steps=case.programs[0].steps[1:])]).passed


def test_agentdojo_tasks_are_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.agentdojo(monkeypatch)
    reader = AgentDojo()
    episode = next(reader.episodes())
    case = next(case for case in reader.cases() if isinstance(case, Case))
    lowered = by_name("c").lower(case.registry)
    run = anyio.run(run_program, episode, lowered.render_program(case.programs[0]), lowered)
    assert run.grade is not None and run.grade.passed


# BFCL


def test_bfcl_types_tools_executes_turns_and_asks_its_checkers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fakes.bfcl(monkeypatch, tmp_path)
    reader = Bfcl("base")
    case, other = reader.cases()
    assert isinstance(case, Case) and isinstance(other, Inexpressible)
    assert other.reason is Reason.LITERAL_TYPE
    assert [len(program.steps) for program in case.programs] == [3, 2]
    assert case.registry["increase"].signature == "increase(by: float) -> increase_result"
    assert case.execute(case.programs) == Graded(passed=True)
    assert reader.notes["reset result.count"].startswith("documented as string")
    idle = type(case.programs[1])(steps=(Return(value=Reference(name="x2")),))
    assert case.execute([case.programs[0], idle]) == Graded(passed=False, why="the counters differ")
    steps = [step for step in case.programs[0].steps if isinstance(step, Let)]
    assert [call_text(step.call) for step in steps] == ["increase(by=2)", "increase(by=2)"]


def test_a_property_called_type_is_no_type_name() -> None:
    documented = {"type": "dict", "properties": {"type": {"type": "dict", "properties": {"a": {"type": "float"}}}}}
    expected = {"type": "object", "properties": {"type": {"type": "object", "properties": {"a": {"type": "number"}}}}}
    assert json_schema(documented) == expected


# NESTFUL


def translated(*steps: dict[str, Any], bridged: bool = False) -> tuple[Catalogue, Translation, Any]:
    catalogue = Catalogue(specs=CARS)
    if bridged:
        amend(catalogue, [{"output": steps}])
    bridges = Bridges() if bridged else None
    translation = Translation(registry=describing(catalogue, None), bridges=bridges)
    return catalogue, translation, translation.program(steps)


def test_a_catalogue_states_types_and_notes_what_it_leaves_open() -> None:
    catalogue = Catalogue(specs=CARS)
    registry = describing(catalogue, None)
    assert (
        registry["Cars_Find"].signature == "Cars_Find(city: string, from?: string, page?: string) -> Cars_Find_result"
    )
    kind = registry["Cars_Find"].returns
    assert isinstance(kind, RecordType)
    assert {part.name: part.type.name for part in kind.fields} == {
        "car_id": "string",
        "price": "float",
        "seats": "list[string]",
        "owner": "Cars_Find_result_owner",
        "photo": "file",
        "extras": "Cars_Find_result_extras",
    }
    assert {"no type", "array without items", "type file", "Cars.Find.extras"} <= set(catalogue.notes)


def test_references_become_field_access() -> None:
    _, _, (program, kind) = translated(find(), rent(), result(car="$var1.owner.name$", total="$var2$"))
    assert [part.type.name for part in kind.fields] == ["string", "Cars_Rent_result"]
    lowered = by_name("c").lower(describing(Catalogue(specs=CARS), None), types=[kind])
    assert lowered.render_program(program).splitlines() == [
        'let var1 = Cars_Find("Rome");',
        "let var2 = Cars_Rent(var1.car_id, 2);",
        "return var_result_1(car = var1.owner.name, total = var2);",
    ]


OUTSIDE = [
    ([find(page=1), result(a="$var1$")], Reason.LITERAL_TYPE),
    ([find(), rent(days="$var1.car id$"), result()], Reason.REFERENCE_TYPE),
    ([find(), rent(car="$var1.colour$"), result()], Reason.UNKNOWN_FIELD),
    ([rent(), result()], Reason.UNBOUND),
    ([find(colour="red"), result(a="$var1$")], Reason.UNKNOWN_PARAMETER),
    ([{"name": "Cars.Rent", "arguments": {"car": "a"}, "label": "var1"}, result()], Reason.MISSING_PARAMETER),
    ([find(), rent(car="id: $var1.car id$"), result()], Reason.COMPUTED),
    ([find(), rent(car="$var1.seats[0]$"), result()], Reason.INDEX),
]


@pytest.mark.parametrize(("steps", "reason"), OUTSIDE)
def test_what_lies_outside_the_stated_types_says_why(steps: list[dict[str, Any]], reason: Reason) -> None:
    with pytest.raises(InexpressibleError) as caught:
        translated(*steps)
    assert caught.value.reason is reason


BRIDGED = [
    ([find(page=1)], ['let var1 = Cars_Find("Rome", page = "1");']),
    ([find(), rent(days="$var1.car id$")], ["let bridge1 = float_of_string(var1.car_id);"]),
    ([find(), rent(car="id: $var1.car id$")], ['let bridge1 = join_text(["id: ", var1.car_id]);']),
    ([find(), rent(car="$var1.seats[0]$")], ["let bridge1 = item_of_list_string(var1.seats, 0);"]),
    ([find(), rent(days="2 * $var1.price$")], ["let bridge1 = multiply(2.0, var1.price);"]),
    ([find(), rent(note=["$var1.car id$"])], ["let bridge1 = text_of_list_string([var1.car_id]);"]),
    ([find(), rent(fast="very")], ['let var2 = Cars_Rent(var1.car_id, 2, fast = "very");']),
]


@pytest.mark.parametrize(("steps", "lines"), BRIDGED)
def test_bridges_write_out_what_the_source_leaves_unsaid(steps: list[dict[str, Any]], lines: list[str]) -> None:
    end = result(a="$var1$")
    catalogue, translation, (program, kind) = translated(*steps, end, bridged=True)
    registry = describing(catalogue, translation.bridges)
    lowered = by_name("c").lower(registry, types=[kind])
    assert set(lines) <= set(lowered.render_program(program).splitlines())
    labels = {step["label"]: step["label"] for step in steps}
    back = Back(registry=registry, specs=CARS, labels=labels, result=kind, origins=translation.origins)
    # Spelled as the package does, the bridges are gone again.
    assert json.dumps(back.steps(program)).replace('"1"', "1") == json.dumps([*steps, end])


def test_a_literal_that_is_no_numeral_becomes_no_number() -> None:
    translation = Translation(registry=describing(Catalogue(specs=CARS), None), bridges=Bridges())
    with pytest.raises(InexpressibleError, match="float from 'many', a string"):
        translation.program([find(), rent(days="many"), result()])


@pytest.mark.parametrize("seed", ["a", "b"])
def test_stand_ins_are_of_their_type_and_the_same_each_time(seed: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"enum": ["x", "y"]}},
            "b": {"type": ["number", "null"]},
            "c": {"type": "string", "format": "date"},
            "d": {"type": "string", "x-nominal": "D"},
            "e": {"type": "boolean"},
            "f": {},
        },
    }
    kind = type_from_schema(schema, opaque=True)
    assert kind.validate(stand_in(kind, seed)) == stand_in(kind, seed)
    assert stand_in(kind, seed) != stand_in(kind, seed + "!")


# Gold programs, corruptions and variations in every dialect


@pytest.fixture(name="cases", scope="module")
def made_cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """A case of each suite, on the stand-ins."""
    with pytest.MonkeyPatch.context() as patch:
        fakes.agentdojo(patch)
        fakes.bfcl(patch, tmp_path_factory.mktemp("bfcl"))
        cases = [case for reader in (AgentDojo(), Bfcl("base")) for case in reader.cases() if isinstance(case, Case)]
    catalogue, _, (program, kind) = translated(find(), rent(note="$var1.owner.name$"), result())
    nested = Case(
        suite="nestful",
        name="cars",
        prompts=("Rent a car.",),
        registry=describing(catalogue, None),
        programs=(program,),
        output_types=(kind,),
        types=(kind,),
        execute=lambda programs: Graded(passed=True),
        baseline=lambda: Graded(passed=True),
    )
    return [*cases, nested]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_gold_is_accepted_corruptions_refused_and_variations_accepted(cases: list[Case], dialect: str) -> None:
    lowerings, chance = Lowerings(by_name(dialect)), random.Random(1)
    made: set[Corruption | Variation] = set()
    for case in cases:
        lowered = lowerings.of(case)
        assert [found.fault for found in accept(case, lowered)] == ["" for _ in case.programs]
        for place in places(case, lowered):
            for wrong in corrupt(place, chance):
                assert wrong.refused, wrong
                assert wrong.distance is None or wrong.distance >= 0, wrong
                made.add(wrong.kind)
            for other in vary(place, chance):
                assert other.accepted, other
                made.add(other.kind)
    assert made == {*Corruption, *Variation}


def test_a_faulty_gold_program_is_found(cases: list[Case]) -> None:
    case = cases[-1]
    ill = type(case.programs[0])(steps=(*case.programs[0].steps[1:],))
    wrong = Case(
        suite="s",
        name="n",
        prompts=(),
        registry=case.registry,
        programs=(ill,),
        types=case.types,
        execute=case.execute,
        baseline=case.baseline,
    )
    (found,) = accept(wrong, Lowerings(by_name("c")).of(wrong))
    assert found.fault.startswith("lost at byte")


def test_the_command_measures_keeps_and_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.agentdojo(monkeypatch)
    out = ["--out", str(tmp_path)]
    assert main(["all", "agentdojo", "--dialects", "c", *out]) == 0
    record = json.loads((tmp_path / "agentdojo.json").read_text(encoding="utf-8"))
    assert record["counts"]["expressible"] == 1
    assert record["executed"]["passed"] == record["executed"]["passed_in_the_suite_itself"] == 1
    assert record["gold"]["c"]["accepted"] == record["gold"]["c"]["programs"] == 1
    assert record["corruptions"]["c"]["unknown tool"]["made"] == record["corruptions"]["c"]["unknown tool"]["refused"]
    assert main(["page", *out]) == 0
    assert "| agentdojo | 2 | 1 (50.0%) |" in (tmp_path / "suites.md").read_text(encoding="utf-8")
    assert main(["gold", *out]) == 2
    assert main(["counts", "no_suite", *out]) == 2
    assert "no suite is called 'no_suite'" in capsys.readouterr().err


# The packages themselves

INSTALLED = [
    ("agentdojo", AgentDojo(), 97),
    ("bfcl_eval", Bfcl("base"), 200),
    ("nestful", Nestful(bridged=True), 300),
]


@pytest.mark.parametrize(("package", "reader", "tasks"), INSTALLED, ids=lambda case: str(case)[:10])
@pytest.mark.slow
def test_the_package_itself_passes_its_own_grader(package: str, reader: Any, tasks: int) -> None:
    if not fakes.installed(package):
        pytest.skip(f"{package} is not installed; docs/suites.md says how to install it")
    found = list(reader.cases())
    assert len(found) == tasks
    cases = [case for case in found if isinstance(case, Case)]
    assert len(cases) >= 0.94 * tasks
    lowerings = Lowerings(by_name("c"))
    for case in itertools.islice(cases, 0, None, 40):
        assert case.execute(case.programs) == case.baseline()
        assert all(not text.fault for text in accept(case, lowerings.of(case)))
        assert isinstance(case.programs[-1].steps[-1], Return)
