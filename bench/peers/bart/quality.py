# SPDX-License-Identifier: Apache-2.0
"""Errors against a known image, and a picture of both programs' images."""

import json
import struct
import zlib

import numpy as np

from data import plane_of_head

WEIGHTS = ["0.001", "0.003", "0.01", "0.03", "0.1"]
# Upper bounds for the NRMSE of magnitudes, by acceleration, term, iterations.
WANTED = {(4, "l2", 30): 0.059, (4, "l1wav", 100): 0.034, (4, "tv", 100): 0.036,
          (6, "l2", 30): 0.080, (6, "l1wav", 100): 0.046, (6, "tv", 100): 0.057}
BART = {"l2": ["-l2", "-r"], "l1wav": ["-l1", "-r"], "tv": ["-R", "T:7:0:"], "tgv": ["-R", "G:7:0:"]}


def simulate(runner, data, acceleration):
    """The middle slice of the head, 224 x 192, 8 ring coils; noise 0.01, seed 3."""
    np.save(data.path("plane.npy"), plane_of_head())
    runner.run("ours", ["simulate", "plane.h5", "--image", "plane.npy", "--coils", "8",
                        "--acceleration", str(acceleration), "--center", "24", "--noise", "0.01",
                        "--seed", "3", "--reference", "plane_reference.npy", "--save-maps",
                        "plane_maps.npy", "--save-kspace", "plane_kspace.npy"])
    for name in ("plane_kspace", "plane_maps"):
        array = np.load(data.path(name + ".npy"))
        data.save(name, array, [*array.shape[:0:-1], 1, array.shape[0]])


def bart_words(term, weight, iterations):
    *words, last = BART[term]
    return ["pics", "-S", *words, last + weight, "-i", str(iterations), "plane_kspace",
            "plane_maps", "theirs"]


def our_words(term, weight, iterations, *more):
    return ["recon", "plane_kspace.cfl", "--maps", "plane_maps.cfl", "--save", "own.cfl", "--reg",
            f"{term}:{weight}", "--iterations", str(iterations), "--tolerance", "0", *more]


def error(runner, image):
    run = runner.run("ours", ["compare", "plane_reference.npy", image, "--mask", "none", "--json"])
    return json.loads(run.output)["images"][0]["nrmse"]


def measure(runner, data):
    """The least error over the weights, of both programs."""
    rows = []
    for acceleration in (4, 6):
        simulate(runner, data, acceleration)
        for term, iterations in (("l2", 30), ("l1wav", 100), ("tv", 100)):
            best = {"ours": (np.inf, ""), "bart": (np.inf, "")}
            for weight in WEIGHTS:
                runner.run("ours", our_words(term, weight, iterations))
                best["ours"] = min(best["ours"], (error(runner, "own.cfl"), weight))
                runner.run("bart", bart_words(term, weight, iterations))
                best["bart"] = min(best["bart"], (error(runner, "theirs.cfl"), weight))
            rows.append({"acceleration": acceleration, "term": term, **best,
                         "wanted": WANTED[acceleration, term, iterations]})
    return rows


def write_png(path, pixels):
    """8 bits, grey."""
    rows = b"".join(b"\0" + row.tobytes() for row in np.clip(pixels, 0, 255).astype(np.uint8))

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    size = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) +
                   chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def picture(runner, data, nrmse):
    """images.png: columns l2, l1wav, tv, tgv; rows BART, ours, 20 times the difference."""
    simulate(runner, data, 4)
    columns, differences = [], {}
    for term, iterations in (("l2", 30), ("l1wav", 100), ("tv", 200), ("tgv", 200)):
        weight = "0.003"
        runner.run("ours", our_words(term, weight, iterations))
        runner.run("bart", bart_words(term, weight, iterations))
        theirs, own = (np.asarray(data.load(name)) for name in ("theirs", "own"))
        differences[term] = nrmse(own, theirs)
        inner = np.vdot(own, theirs)
        own = own * inner / abs(inner)
        columns.append(np.vstack([abs(theirs), abs(own), 20 * abs(own - theirs)])[::-1])
    brightest = np.percentile(columns[0], 99.9)
    pixels = np.hstack([np.vstack(np.split(c, 3)[::-1]) for c in columns])
    write_png(data.path("images.png"), pixels * (255 / brightest))
    return differences
