"""``defgpa phylo`` and ``defgpa covary``, from the command to the files."""

import json

import numpy as np
import pytest

import defgpa

TREE = "(((a:1,b:1):1,(c:1,d:1):1):1,((e:1,f:1):1,(g:1,h:1):1):1);"


@pytest.fixture
def heads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2)) + 0.05 * rng.normal(size=(16, 8, 2))
    points[3, 2] = np.nan
    names = [f"{name}{k}" for name in "abcdefgh" for k in range(2)]
    defgpa.write_shapes(defgpa.Shapes(points, names=names), "heads.tps")
    rows = [f"{name},{name[0]},{'xy'[i // 8]},{i}" for i, name in enumerate(names)]
    (tmp_path / "heads.csv").write_text("name,taxon,home,mass\n" + "\n".join(rows) + "\n")
    (tmp_path / "tree.nwk").write_text(TREE)
    return tmp_path


def test_phylo_writes_signal_ancestors_model_and_rates(run, heads):
    words = ["phylo", "heads.tps", "--tree", "tree.nwk", "--species", "taxon", "--data"]
    words += ["heads.csv", "-f", "shape ~ mass", "--rates", "home", "-o", "out"]
    text, _ = run.succeed(*words, "--permutations", "19")
    assert "Phylogenetic signal of 8 species: K" in text
    assert "16 specimens, averaged to 8 species" in text
    assert "1 of 128 landmarks (0.8%) completed" in text
    assert "Generalised least squares" in text
    summary = json.loads((heads / "out" / "phylo.json").read_text())
    assert summary["anova"][0]["df"] == 1
    assert summary["rates"]["groups"] == ["x", "y"]
    assert summary["rates"]["pairs"][0]["ratio"] == pytest.approx(summary["rates"]["ratio"])
    ancestors = defgpa.read_shapes(heads / "out" / "ancestors.csv")
    assert ancestors.names[0] == "root"
    assert ancestors.n_shapes == 7
    assert len((heads / "out" / "components.csv").read_text().splitlines()) == 16
    for name in ("signal.png", "components.png", "anova.png", "rates.png"):
        assert (heads / "out" / name).stat().st_size > 1000


def test_phylo_equals_the_library(run, heads):
    words = ["phylo", "heads.tps", "--tree", "tree.nwk", "--species", "taxon", "--data"]
    summary = run.json(*words, "heads.csv", "--permutations", "19")["signal"]
    shapes = defgpa.read_shapes("heads.tps")
    species = [name[0] for name in shapes.names]
    expected = defgpa.statistics.phylogenetic_signal(shapes, "tree.nwk", species, 19)
    assert summary["k"] == pytest.approx(expected.k)
    assert summary["p"] == expected.p


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tree", "absent.nwk"], "absent.nwk"),
        (["--tree", "tree.nwk"], "no tip called 'a0'"),
        (["--tree", "tree.nwk", "--species", "taxa", "--data", "heads.csv"], "no column 'taxa'"),
    ],
)
def test_phylo_refuses_bad_input_and_writes_nothing(run, heads, words, message):
    assert message in run.refuse("phylo", "heads.tps", *words, "-o", "out")
    assert not (heads / "out").exists()


def test_covary_tests_modules_and_compares_hypotheses(run, heads):
    words = ["covary", "heads.tps", "--modules", "jaw=1-3+5,skull=*", "--modules", "a=1-4,b=5-8"]
    text, _ = run.succeed(*words, "-o", "out", "--permutations", "19")
    assert "Modularity: CR" in text
    assert "jaw=1-3+5,skull=* – a=1-4,b=5-8" in text
    summary = json.loads((heads / "out" / "covary.json").read_text())
    shapes = defgpa.read_shapes("heads.tps")
    expected = defgpa.statistics.modularity(shapes, "aaababbb", 19)
    assert summary["modularity"][0]["observed"] == pytest.approx(expected.observed)
    assert summary["modularity"][0]["interval"] == pytest.approx(expected.interval)
    pair = summary["hypotheses_modularity"][0]
    assert [pair["a"], pair["b"]] == ["jaw=1-3+5,skull=*", "a=1-4,b=5-8"]
    assert 0 < pair["p"] <= 1
    assert (heads / "out" / "modularity_2.png").stat().st_size > 1000
    assert len((heads / "out" / "scores.csv").read_text().splitlines()) == 17


def test_covary_compares_shape_with_numbers(run, heads):
    words = ["covary", "heads.tps", "--with", "mass", "--data", "heads.csv", "--json"]
    summary = json.loads(run.succeed(*words, "--permutations", 19)[0])["pls"]
    shapes = defgpa.read_shapes("heads.tps")
    expected = defgpa.statistics.two_block_pls(shapes, np.arange(16.0), None, 19)
    assert summary["r"] == pytest.approx(expected.r)


def test_covary_compares_groups_by_the_strength_of_their_covariation(run, heads):
    words = ["covary", "heads.tps", "--data", "heads.csv", "--by", "home", "--vrel", "-o", "out"]
    modules = ["--modules", "jaw=1-4,skull=*", "--with", "mass", "--permutations", "19"]
    assert "Effect sizes compared: CR" in run.succeed(*words, *modules)[0]
    summary = json.loads((heads / "out" / "covary.json").read_text())
    statistics = defgpa.statistics
    sample = statistics.build_sample(defgpa.read_shapes("heads.tps"))
    members = [np.arange(8), np.arange(8, 16)]
    halves = [sample.take(rows) for rows in members]
    expected = {
        "pls": [
            statistics.two_block_pls(half, rows[:, None], None, 19)
            for half, rows in zip(halves, members, strict=True)
        ],
        "integration": [statistics.integration(half, "aaaabbbb", 19) for half in halves],
        "modularity": [statistics.modularity(half, "aaaabbbb", 19) for half in halves],
    }
    for name, tests in expected.items():
        compared = statistics.compare_effect_sizes(tests)
        actual = summary[f"groups_{name}"]
        assert [row["z"] for row in actual["groups"]] == pytest.approx([test.z for test in tests])
        assert actual["pairs"][0]["p"] == pytest.approx(compared.p[0, 1])
        assert (heads / "out" / f"groups_{name}.csv").exists()
    assert summary["vrel"]["vrel"] == pytest.approx(statistics.eigenvalue_variance(sample).vrel)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--modules", "a=1-4,b=*", "--by", "name", "--data", "heads.csv"], "1 of 'a0'"),
        (["--modules", "a=1-4,b=*", "--modules", "a=1-3,b=*", "--by", "name"], "one hypothesis"),
        (["--vrel", "--by", "name"], "give --modules, or --with"),
        ([], "give --modules, or --with"),
        (["--modules", "jaw"], "modules such as jaw=1-5+9,skull=*"),
        (["--modules", "jaw=1-99,skull=*"], "'1-99' is no landmark"),
        (["--modules", "jaw=1-3,skull=5-8"], "'4' is in no module"),
        (["--modules", "jaw=1-8"], "at least 2 modules"),
        (["--with", "weight"], "no column 'weight'"),
    ],
)
def test_covary_refuses_bad_input(run, heads, words, message):
    assert message in " ".join(run.refuse("covary", "heads.tps", *words, "-o", "out").split())
    assert not (heads / "out").exists()
