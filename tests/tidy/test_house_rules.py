"""Project rules that linters do not check: which modules may use the outside world, the length of files, comments."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
SIMULATOR = sorted((ROOT / "simulator").rglob("*.py"))
PIPELINES = sorted((ROOT / "pipelines").rglob("*.py"))

OUTSIDE = {
    "asyncio",
    "fcntl",
    "mmap",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uvloop",
}
MAY_TOUCH_THE_OUTSIDE = (
    "quire/real/",
    "quire/cli/",
    "quire/console/",
    "quire/testing/",
    "quire/spark/",
    "quire/client/shell_",
    "quire_samples/inventory/cli/",
    "quire_samples/live/",
    "quire_samples/paced_sending.py",
    "quire_samples/shop/send.py",
    "pyspark_quire/one_sentence.py",  # sets an environment variable of Spark's Python process
    "pyspark_quire/spark_process.py",  # it configures Spark's Python process, and imports nothing of Quire
)
LONGEST_FILE = 500
EVERY_TEXT = [
    path
    for folder in ("src", "simulator", "campaign", "tests", "benchmarks", "interop", "docs", "examples", "pipelines")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md"} and path.is_file()
] + sorted(ROOT.glob("*.md"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_real_side_of_the_seams_touches_the_outside(path: Path) -> None:
    inside = path.relative_to(ROOT / "src").as_posix()
    if inside.startswith(MAY_TOUCH_THE_OUTSIDE):
        return
    touched = OUTSIDE & set(imported(path))
    assert not touched, f"{name(path)} imports {sorted(touched)}: go through quire.seams instead"


NODE = [path for path in SOURCES if name(path).startswith("src/quire/node/")]
CONTROLLER_DOOR = "src/quire/node/to_controller.py"


@pytest.mark.parametrize("path", [path for path in NODE if name(path) != CONTROLLER_DOOR], ids=name)
def test_a_node_reaches_the_active_controller_through_its_door_alone(path: Path) -> None:
    found = re.findall(r"active_controller|ActiveController|\.active\b", path.read_text())
    assert not found, f"{name(path)} uses {found[0]}: call a method of ToController instead"


@pytest.mark.parametrize("path", SIMULATOR, ids=name)
def test_the_simulator_takes_time_and_chance_only_from_its_seed(path: Path) -> None:
    allowed = {"random"} if path.name == "random.py" else set()
    if path.name == "main.py":
        allowed = {"os", "time"}
    touched = (OUTSIDE - allowed) & set(imported(path))
    assert not touched, f"{name(path)} imports {sorted(touched)}"


@pytest.mark.parametrize("path", SOURCES + SIMULATOR + PIPELINES, ids=name)
def test_a_file_can_be_read_in_one_sitting(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= LONGEST_FILE, f"{name(path)} has {lines} lines; split it by concept"


@pytest.mark.parametrize("path", SOURCES + SIMULATOR + PIPELINES, ids=name)
def test_a_module_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        docstring = ast.get_docstring(ast.parse(text))
        assert docstring and len(docstring) > 20, f"{name(path)} opens without saying what it is"


@pytest.mark.parametrize("path", EVERY_TEXT, ids=name)
def test_no_note_to_self_without_a_reason(path: Path) -> None:
    if path == Path(__file__).resolve():
        return
    for number, line in enumerate(path.read_text().splitlines(), 1):
        note = re.search(r"\b(TODO|FIXME|XXX)\b(.*)", line)
        assert not note or len(note[2].strip(" :")) > 20, f"{name(path)}:{number}: {line.strip()}"


COMMANDS = [
    path
    for path in SOURCES
    if re.search("/quire/(cli|console)/|/quire_samples/", name(path)) and path.name != "terminal.py"
]
PRINTS = {"print", "click.echo", "click.secho", "click.echo_via_pager", "click.confirm", "click.prompt"}


@pytest.mark.parametrize("path", COMMANDS, ids=name)
def test_commands_print_through_the_one_place_that_escapes_control_characters(path: Path) -> None:
    """Output goes through `quire.console.terminal`, which escapes control sequences in foreign text."""
    tree = ast.parse(path.read_text())
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not called & PRINTS
    assert not {call for call in called if re.fullmatch(r"sys\.std(out|err)(\.buffer)?\.writ\w*", call)}
    taken = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert "draw" not in taken or path.name == "live_screen.py"


@pytest.mark.parametrize("path", SOURCES + SIMULATOR, ids=name)
def test_sections_of_a_file_begin_in_one_style(path: Path) -> None:
    """A comment between two empty lines names a section: `# --- Reading`."""
    lines = ["", *path.read_text().splitlines(), ""]
    alone = [
        line.strip()
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
        if line.lstrip().startswith("# ") and not before.strip() and not after.strip()
    ]
    odd = [comment for comment in alone if not re.fullmatch(r"# --- [A-Z`].*[^-. ]", comment)]
    assert not odd, f"{name(path)}: write {odd[0]} as `# --- Title`"
