"""Rules of the sources that no compiler checks: meaning is typed, and a default stands once."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def sources(*folders, suffixes=(".cpp", ".h", ".td")):
    for folder in folders:
        yield from sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def offences(lines, rules):
    """(number, line) of every line that one of the rules matches; comments do not count."""
    return [(number, line.strip()) for number, line in enumerate(lines, 1)
            if any(re.search(rule, line.split("//")[0]) for rule in rules)]


# Phases, stages, and what state belongs to are attributes of ops and fields of plans: names are for people. Names may be made, and
# compared as a whole, but nothing is read off a part of one, and nothing is found by a name put together.
WORD = r'"[^"]*(?:::|forward|backward|weight|update|evaluate|receive|gradient)[^"]*"'
PARSED = [
    rf"\b(?:starts_with|ends_with|startswith|endswith|consume_front|consume_back|r?split|r?find|contains|compare)\s*\(\s*{WORD}",
    r"\bgradientName\(\"\"\)",  # its length, to cut it off
    rf"\b(?:lookup\w*|find|contains|count|at)(?:<[^>]*>)?\([^;]*(?:\+ *{WORD}|\b(?:gradient|squareSum|momentum|\w*Moment)Name\()",
]
ALLOWED = set()  # (file, line), each with its reason


def test_no_meaning_is_parsed_from_names():
    found = [f"{path.relative_to(ROOT)}:{number}: {line}"
             for path in sources("compiler", "dialects", "runtime") if "import" not in path.parts
             for number, line in offences(path.read_text().splitlines(), PARSED)
             if (str(path.relative_to(ROOT)), line) not in ALLOWED]
    assert not found, "meaning is parsed from names; ask attributes or fields:\n" + "\n".join(found)


def test_parsed_names_are_found():
    for line in ('if (name.starts_with("backward"))', 'name.split("::").first', 'first.drop_back(gradientName("").size())',
                 'name.consume_back("::gradient")', 'names.contains(variable.name() + "::gradient")',
                 'symbols.lookup<train::VariableOp>(gradientName(parameter.getSymName()))'):
        assert offences([line], PARSED), line
    for line in ('name + "::gradient"', 'make(gradientName(name), bucket)', 'program.getSymName() == "step"', '// name.starts_with("backward")',
                 'isa.starts_with("sm_")'):
        assert not offences([line], PARSED), line


# Defaults of configuration keys stand in the tables of compiler/config, those of machines in Machine.h. docs/config.md is written from
# the tables and compared with them by config_test.
NUMBER = r"-?(?:\d[\d']*)(?:\.\d+)?(?:e-?\d+)?(?: << \d+)?"
TABLES = {"KnownKeys.cpp", "ParameterRules.cpp", "KeyRules.cpp", "Machine.h"}
NEUTRAL = {0.0, 1.0, -1.0, float(2**63 - 1)}  # nothing, one, and no limit are nobody's choice


def value(text):
    """The number or text that a literal stands for, or None."""
    text = text.strip()
    if re.fullmatch(NUMBER, text):
        number, *shift = text.replace("'", "").split(" << ")
        return float(number) * (1 << int(shift[0]) if shift else 1)
    return text if re.fullmatch(r'"\w+"', text) else None


def configured_defaults():
    """Of honoured keys and of machines: value -> the key's name."""
    rows = re.findall(r"^\| `([\w.]+)` \| [^`]* \| `(.*?)` \| honoured", (ROOT / "docs/config.md").read_text(), re.M)
    assert len(rows) > 40, "docs/config.md has another form than this test reads"
    machine = re.findall(rf"^  int64_t (\w+) = ({NUMBER});", (ROOT / "compiler/config/Machine.h").read_text(), re.M)
    assert {name for name, _ in machine} >= {"threads", "alignment", "workspaceBytesPerThread"}
    defaults = {}
    for name, text in [*rows, *machine]:
        for part in text.strip("[]").split(","):
            if (one := value(part)) is not None and one not in NEUTRAL:
                defaults.setdefault(one, name)
    assert {5e8, 5e7, 1e9, 1e5, 1e-3, 0.999, 1e-8, '"1f1b"', '"best"', 8.0, 64.0, float(4 << 20)} <= defaults.keys()
    return defaults


LITERAL = rf'({NUMBER}|"\w+")'
DEFAULTS = [  # where a default may stand: the initializer of a field, a command line's, what stands in for a missing value
    rf"^(?!.*\bconst(?:expr)?\b)[^=()]*\b\w+ = {LITERAL}(?=[;,])",
    rf", \w+ = {LITERAL}(?=[;,])",
    rf"\binit\({LITERAL}\)",
    rf"\bvalue_or\({LITERAL}\)",
]
OPTION = re.compile(r'Option<\s*"(\w+)",\s*"[\w-]+",\s*"[^"]*",\s*"((?:[^"\\]|\\.)*)"')


def second_defaults(path, text, defaults):
    if path.suffix == ".td":
        places = [(text.count("\n", 0, match.start()) + 1, match[2].replace('\\"', '"')) for match in OPTION.finditer(text)]
    else:
        places = [(number, match[1]) for number, line in enumerate(text.splitlines(), 1)
                  for rule in DEFAULTS for match in re.finditer(rule, line.split("//")[0])]
    return [f"{path}:{number}: {literal} is the default of {defaults[value(literal)]}"
            for number, literal in places if value(literal) in defaults]


def test_a_default_stands_once():
    defaults = configured_defaults()
    options = 0
    found = []
    for path in sources("compiler/passes", "compiler/driver", "compiler/report", "compiler/analysis", "compiler/config"):
        text = path.read_text()
        options += len(OPTION.findall(text))
        if path.name not in TABLES:
            found += second_defaults(path.relative_to(ROOT), text, defaults)
    assert options > 40, "Passes.td has another form than this test reads"
    assert not found, "defaults of the configuration stand in compiler/config alone:\n" + "\n".join(found)


def test_second_defaults_are_found():
    defaults = configured_defaults()
    for text in ("  int64_t bucketElements = 500'000'000;", "  double beta1 = 0, beta2 = 0.999;", "llvm::cl::init(1000000000)};",
                 "resolver.integer(path).value_or(1000);", '  std::string schedule = "1f1b", partition;', "int64_t bytes = 4 << 20;"):
        assert second_defaults(Path("a.h"), text, defaults), text
    assert second_defaults(Path("a.td"), 'Option<"lr", "lr", "double", "1e-3", "rate">', defaults)
    assert second_defaults(Path("a.td"), 'Option<"kind", "kind", "std::string",\n   "\\"best\\"", "">', defaults)
    for text in ("  int64_t stage = 0;", "constexpr int64_t block = 64;", "value_or(0)", "// = 1000;", "if (a == 8)"):
        assert not second_defaults(Path("a.h"), text, defaults), text
    assert not second_defaults(Path("a.td"), 'Option<"maxOps", "max-ops", "int64_t", "24", "">', defaults)


# scripts/run_tests.py release tests binaries of another build than the one that has the tests' helpers.
OWN_BINARIES = [r'BUILD\b.*\bds-(?:opt|run)\b']


def test_users_binaries_come_from_conftest():
    found = [f"{path.relative_to(ROOT)}:{number}: {line}" for path in sources("test/e2e", suffixes=(".py",)) if path != Path(__file__)
             for number, line in offences(path.read_text().splitlines(), OWN_BINARIES)]
    assert not found, "take ds-opt and ds-run from conftest's FOLDERS:\n" + "\n".join(found)
    assert offences(['run = BUILD / "bin" / "ds-run"'], OWN_BINARIES) and offences(['[BUILD / "bin/ds-opt"]'], OWN_BINARIES)
