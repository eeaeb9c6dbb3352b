# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown. Bold: what is wanted was not reached."""


def bold(text, is_missed):
    return f"**{text}**" if is_missed else text


def seconds(x):
    return f"{1e3 * x:.3g} ms" if x < 1 else f"{x:.3g} s"


def megabytes(x):
    return f"{x / 1e6:,.0f}" if x >= 1e7 else f"{x / 1e6:.1f}"


def agreement(row):
    wanted = row["wanted"][0]
    text = f"{row['nrmse']:.2g}"
    if row.get("other support"):
        text += f", support {row['other support']} points other"
    return bold(text, wanted and row["nrmse"] > wanted) + (f" ({wanted:g})" if wanted else "")


def ratio(pair, wanted):
    value = pair[0] / pair[1]
    return bold(f"{value:.2g}", wanted and value < wanted) + (f" ({wanted:g})" if wanted else "")


def of_cases(rows):
    lines = ["| case | NRMSE (at most) | BART | ours | times: BART's / ours (at least) | "
             "peak MB: BART | ours | BART's / ours (at least) |", "|" + "---|" * 8]
    for name, row in rows.items():
        cells = [name, agreement(row)]
        if "seconds" in row:
            cells += [*map(seconds, row["seconds"]), ratio(row["seconds"], row["wanted"][1])]
        else:
            cells += ["", "", ""]
        cells += [*map(megabytes, row["peaks"]), ratio(row["peaks"], row["wanted"][2])]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def of_memory(rows):
    lines = ["| case | announced MB | measured MB | `--memory` MB | announced MB | measured MB | "
             "difference of the image | time: cut / whole |", "|" + "---|" * 8]
    for name, row in rows.items():
        cells = [name, megabytes(row["announced"]), megabytes(row["measured"])]
        budget = row.get("budget")
        if budget:
            part = 100 * budget["given"] / budget["whole"]
            is_missed = budget["given"] > budget["wanted"]
            cells += [bold(f"{megabytes(budget['given'])}, {part:.0f} %", is_missed),
                      megabytes(budget["announced"]), megabytes(budget["measured"]),
                      bold(f"{budget['nrmse']:.1g}", budget["nrmse"] > 1e-5),
                      f"{budget['time ratio']:.2f}"]
        else:
            cells += [""] * 5
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def of_models(rows):
    lines = ["| case | ours against the model (at most) | BART against it | models of both |",
             "|" + "---|" * 4]
    for name, row in rows.items():
        cells = [bold(f"{row['ours']:.2g}", row["ours"] > row["wanted"]) + f" ({row['wanted']:g})"]
        cells += [f"{row[k]:.2g}" if k in row else "" for k in ("bart", "between")]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def of_quality(rows):
    lines = ["| acceleration | term | ours (at most) | its weight | BART | its weight |",
             "|" + "---|" * 6]
    for row in rows:
        value = row["ours"][0]
        # The bounds have three decimals.
        is_missed = round(value, 3) > row["wanted"]
        lines.append(f"| {row['acceleration']} | `{row['term']}` | " +
                     bold(f"{value:.4f}", is_missed) + f" ({row['wanted']:g}) | {row['ours'][1]} | "
                     f"{row['bart'][0]:.4f} | {row['bart'][1]} |")
    return lines


def markdown(results):
    lines = [""]
    about = results.get("about", {}).get("run")
    if about:
        taken = [-(-n // about["step"]) for n in (181, 217, 181)]
        extents = " x ".join(str(n + n % 2) for n in taken)
        lines.append(f"Threads: {about['threads']}; clock: {about['clock']}; turns: "
                     f"{about['turns'][0]}, of the volume {about['turns'][1]}; volume: {extents}.")
    for title, part in (("Agreement, time and memory", "cases"), ("Budgets", "cases"),
                        ("Against models in double precision", "models"),
                        ("Errors against the known image", "quality")):
        rows = results.get(part)
        if not rows:
            continue
        lines += ["", f"## {title}", ""]
        if part == "quality":
            lines += of_quality(rows["table"])
        elif part == "models":
            lines += of_models(rows)
        else:
            lines += of_memory(rows) if title == "Budgets" else of_cases(rows)
    return "\n".join(lines[1:]) + "\n"
