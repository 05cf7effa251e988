"""Opens run records with DuckDB, as people do, and asks them what docs/analysis.md and the README ask.

    check.py SKCTL DOCS README

Runs the commands of docs/analysis.md in an empty folder. Then: every table has exactly the columns that docs/run-record.md
lists, with the rows that run.json promises; each question has the same answer in SQL and in pandas; sums equal summary.json;
the README's line shows the pods that were never placed. Needs duckdb and pandas; `make records` brings them.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas as pd


def blocks(page, language):
    """What stands between fences of a language, with the name after it."""
    pattern = rf"^```{language}(?: (\S+))?\n(.*?)^```$"
    return re.findall(pattern, page, re.MULTILINE | re.DOTALL)


def prepare(page, skctl):
    """Writes the files of the page and runs its commands."""
    for name, text in blocks(page, "yaml"):
        Path(name).write_text(text)
    for _, commands in blocks(page, "sh"):
        for command in commands.splitlines():
            subprocess.run(["bash", "-c", command.replace("skctl", skctl, 1) + " -q"], check=True, stdout=subprocess.DEVNULL)


def check_tables(page):
    """The tables are as documented, and as many rows as run.json says."""
    documented = {}
    for section in page.split("\n## ")[1:]:
        match = re.match(r"(\w+): ", section)
        if match:
            cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
            documented[match[1]] = ["run_id"] + [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    folders = sorted(Path("runs").iterdir())
    assert folders, "the commands of the page left no run"
    for folder in folders:
        meta = json.loads((folder / "run.json").read_text())
        files = {path.stem for path in folder.glob("*.parquet")}
        assert files == set(meta["tables"]) == set(documented), (files, set(meta["tables"]), set(documented))
        for table, promised in meta["tables"].items():
            relation = duckdb.read_parquet(f"{folder}/{table}.parquet")
            assert relation.columns == documented[table], (table, relation.columns, documented[table])
            rows = relation.df()
            assert len(rows) == promised["rows"], (folder, table)
            assert len(rows) == 0 or set(rows.run_id) == {meta["run_id"]}, (folder, table)
            for column, kind in zip(relation.columns, relation.types):
                if column.endswith("_s"):
                    assert str(kind) == "DOUBLE", (table, column, kind)
    print(f"ok  {len(folders)} records, {len(documented)} tables each, as documented")


def same(sql, pandas, question):
    """Two answers say the same, row by row."""
    assert len(sql) > 0, f"{question}: no rows, so nothing is shown"
    assert list(sql.columns) == list(pandas.columns), (question, list(sql.columns), list(pandas.columns))
    pandas = pandas.reset_index(drop=True)
    for column in sql.columns:
        one, other = sql[column], pandas[column]
        if pd.api.types.is_numeric_dtype(one):
            assert ((one.astype(float) - other.astype(float)).abs() < 1e-6).all(), (question, column)
        else:
            assert (one.astype(str) == other.astype(str)).all(), (question, column, sql, pandas)
    print(f"ok  {question}: {len(sql)} rows, the same in SQL and pandas")


def check_questions(page):
    """Each question in both languages."""
    sections = page.split("\n## ")
    names = {}
    exec(blocks(sections[0], "python")[0][1], names)
    answers = []
    for section in sections[1:]:
        question = section.splitlines()[0]
        sql = duckdb.sql(blocks(section, "sql")[0][1]).df()
        exec(blocks(section, "python")[0][1], names)
        same(sql, names["answer"], question)
        answers.append(sql)
    assert len(answers) == 6, "the page has lost a question"
    return answers


def check_sums(answers):
    """What the questions add up to is what summary.json says."""
    never, _, cost, _, _, _ = answers
    for folder in Path("runs").iterdir():
        run_id = json.loads((folder / "run.json").read_text())["run_id"]
        figures = json.loads((folder / "summary.json").read_text())
        mine = cost[cost.run_id == run_id]
        close = lambda a, b: abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1)
        assert close(mine.node_hours.sum(), figures["node_hours"]["total"]), (folder, mine, figures["node_hours"])
        assert close(mine.cost.sum(), figures["cost"]["total"]), (folder, mine, figures["cost"])
        unplaced = int(never[never.run_id == run_id].pods.sum())
        assert unplaced >= figures["unschedulable"]["pods"], (folder, unplaced, figures["unschedulable"])
    print("ok  node-hours, cost and pods that were never placed are those of summary.json")


def check_readme(readme):
    """The README's line shows owners of pods that were never placed."""
    line = re.search(r'^duckdb -c "(.*)"$', readme, re.MULTILINE)
    assert line, "the README has no duckdb line"
    rows = duckdb.sql(line[1]).fetchall()
    assert rows and rows[0][1] > 0, f"no pod that was never placed: {rows}"
    print(f"ok  the README's line: {rows[0]}")


def main():
    skctl, docs, readme = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    page = (docs / "analysis.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(page, str(skctl))
        check_tables((docs / "run-record.md").read_text())
        check_sums(check_questions(page))
        check_readme(readme.read_text())


if __name__ == "__main__":
    main()
