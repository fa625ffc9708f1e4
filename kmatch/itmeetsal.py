"""What the recipes of ITMeetsAL share: settings, rates and ablations.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021. No code was published; what
the paper leaves open is said where it is filled in.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import keras
import numpy as np

from kmatch import data, recipe
from kmatch.callbacks import Checkpoint, RecallAtK
from kmatch.matchers import AdversarialMatcher
from kmatch.retrieval import evaluate
from kmatch.towers import Tower, mobilenet, resnet152, vgg19

BACKBONES = {"mobilenet": mobilenet, "vgg": vgg19, "resnet152": resnet152}
METRICS = tuple(
    f"{direction}_{name}"
    for direction in ("i2t", "t2i")
    for name in ("r1", "r10", "map")
)
WATCHED = ("discriminator_accuracy", "modality_entropy")


def settings(
    name: str, backbone: str = "mobilenet", **options
) -> recipe.Settings:
    """The paper's settings for a data set (section 5.1).

    The batch size is 64 pairs: 32 images with two captions each, so that a
    caption has another of its image beside it, without which L_tr would have
    no positives among texts. The number of epochs is not given.

    Args:
        name: Of the data set.
        backbone: `"mobilenet"`, `"vgg"` or `"resnet152"`.
        **options: In place of what is here.
    """
    defaults = {
        "data": name,
        "image_tower": partial(BACKBONES[backbone], image_size=224),
        "batch_size": 32,
        "captions_per_image": 2,
        "stages": [recipe.Stage(epochs=30, learning_rate=2e-4)],
    }
    return recipe.Settings(**{**defaults, **options})


def build_matcher(
    settings: recipe.Settings,
    splits: data.Splits,
    image_tower: Tower,
    **options,
) -> AdversarialMatcher:
    """Builds the paper's model, not compiled yet.

    Args:
        settings: The recipe's.
        splits: The data set's.
        image_tower: The image tower.
        **options: More arguments for `AdversarialMatcher`.
    """
    return recipe.build_matcher(
        settings,
        splits,
        image_tower,
        matcher=AdversarialMatcher,
        num_classes=splits.train.num_labels,
        **options,
    )


def compile_matcher(
    model: AdversarialMatcher,
    settings: recipe.Settings,
    stage: recipe.Stage,
    steps: int,
    num_labels: int,
    **options,
):
    """Configures a stage: lr1 for the image backbone, lr2 for the rest.

    lr1 is 2e-5 and falls every two epochs; by how much is not given: × .94. A
    backbone that starts from random weights has the rate of the rest.

    Args:
        model: What to compile.
        settings: The recipe's.
        stage: The stage that begins.
        steps: Steps per epoch.
        num_labels: Number of training labels.
        **options: For `AdversarialMatcher.compile`.
    """
    adam = partial(keras.optimizers.Adam, epsilon=1e-8)
    image_tower_optimizer = None
    if settings.image_weights is not None:
        image_tower_optimizer = adam(
            keras.optimizers.schedules.ExponentialDecay(
                2e-5, 2 * steps, 0.94, staircase=True
            )
        )
    model.compile(
        optimizer=adam(recipe.learning_rate(stage, steps)),
        # lr2 of real data, also where embedded data has a higher one.
        discriminator_optimizer=adam(2e-4),
        image_tower_optimizer=image_tower_optimizer,
        **options,
    )


def run(
    name: str,
    description: str,
    data_name: str,
    paper: Mapping[str, Mapping[str, float]],
    protocol: str | None = None,
):
    """Runs a recipe from its command line to the exported model.

    Args:
        name: The recipe's.
        description: The recipe's docstring.
        data_name: The data set's.
        paper: By backbone, the row to print beside the result.
        protocol: Of `kmatch.evaluate`, if the paper's row is not for the
            whole test split.
    """
    parser = recipe.parser(description, output=f"saved_models/{name}")
    _add_choices(parser)
    args = parser.parse_args()
    row = {f"ITMeetsAL ({args.backbone}), paper": paper[args.backbone]}
    recipe.follow(
        args,
        settings(data_name, args.backbone),
        {} if protocol and args.data_dir else row,
        build=partial(build_matcher, paradigm=args.paradigm),
        compile=compile_matcher,
        protocols={protocol: row} if protocol else None,
    )


def _add_choices(parser):
    add = parser.add_argument
    add(
        "--backbone",
        choices=BACKBONES,
        default="mobilenet",
        help="image tower for real data; default: %(default)s",
    )
    add(
        "--paradigm",
        choices=("unified", "separate"),
        default="unified",
        help="Figure 4 or Figure 7; default: %(default)s",
    )


def ablate(
    name: str,
    description: str,
    rows: Mapping[str, Mapping],
    paper: Mapping[str, Mapping[str, float]],
    backbone: str = "mobilenet",
):
    """Trains each row of a table with several seeds and prints it.

    What a run gave is saved as it ends: called again with the same output,
    only the missing ones are run.

    Args:
        name: The ablation's.
        description: Its docstring.
        rows: By the row's name, arguments of `AdversarialMatcher.compile`,
            and `paradigm`.
        paper: The paper's rows by the same names, as fractions; or those by
            data set.
        backbone: Image tower for real data.
    """
    args = _ablation_arguments(name, description, backbone)
    paper = paper.get(args.data, paper)
    chosen, splits = _ablation_data(args)
    output = Path(args.output)
    _check_settings(output, args)
    results = {}
    for number in range(args.seed, args.seed + args.seeds):
        for row, options in rows.items():
            key = f"{row}, seed {number}"
            file = output / "runs" / f"{list(rows).index(row)}-{number}.json"
            if not file.exists():
                print(f"{key}:")
                result = _run_once(args, chosen, splits, options, number)
                _write(file, {"row": row, "seed": number, **result})
            results.setdefault(row, []).append(json.loads(file.read_text()))
    table = format_table(results, paper)
    print(table)
    _write(output / "table.json", {"rows": results, "paper": dict(paper)})
    print(f"Every run's figures are in {output / 'table.json'}")


def _check_settings(output, args):
    """Refuses to put runs of other settings into one table."""
    varying = ("output", "seed", "seeds")
    own = {key: x for key, x in vars(args).items() if key not in varying}
    file = output / "settings.json"
    if file.exists() and json.loads(file.read_text()) != own:
        raise SystemExit(
            f"{output} holds runs of other settings, in {file}. Choose another "
            "--output, or delete it."
        )
    _write(file, own)


def _ablation_arguments(name, description, backbone):
    parser = recipe.parser(
        description, output=f"saved_models/ablations/{name}", resume=False
    )
    add = parser.add_argument
    add(
        "--data",
        default="flickr30k",
        help="name of the data set in --data-dir; default: %(default)s",
    )
    add(
        "--backbone",
        choices=BACKBONES,
        default=backbone,
        help="image tower for real data; default: %(default)s",
    )
    add("--alpha", type=float, help="width of MobileNet; default: 1")
    add("--units", type=int, help="LSTM units per direction, for less work")
    add("--seeds", type=int, default=2, help="default: %(default)s")
    add("--captions-per-image", type=int, help="default: 2, embedded data 3")
    add(
        "--freeze",
        action="store_true",
        help="leave the image tower as it is, and compute its features once, "
        "of images that are never mirrored",
    )
    args = parser.parse_args()
    if args.alpha and args.backbone != "mobilenet":
        parser.error("--alpha is for --backbone mobilenet")
    return args


def _ablation_data(args):
    options = {}
    if args.alpha:
        tower = partial(mobilenet, image_size=224, alpha=args.alpha)
        options["image_tower"] = tower
    chosen, splits = recipe.load_data(
        settings(args.data, args.backbone, **options), args.data_dir
    )
    # A frozen tower's features differ in scale by orders of magnitude.
    chosen = dataclasses.replace(chosen, standardize_features=args.freeze)
    if args.units:
        chosen = dataclasses.replace(
            chosen, units=args.units, word_embedding=args.units
        )
    if args.data_dir is None:
        # Enough to tell the rows apart, in a few minutes each.
        chosen = dataclasses.replace(
            chosen, stages=[recipe.Stage(epochs=4, learning_rate=2e-3)]
        )
    return chosen, splits


def _run_once(args, chosen, splits, options, number):
    options = dict(options)
    recipe.seed(number)
    tower, weights = recipe.pretrained(
        chosen.image_tower, args.image_weights or chosen.image_weights
    )
    chosen = dataclasses.replace(chosen, image_weights=weights)
    model = build_matcher(
        chosen,
        splits,
        tower,
        paradigm=options.pop("paradigm", "unified"),
    )
    if args.freeze:
        model.freeze_image_tower = True
        model.cache_features(f"{args.output}/features")
    (stage,) = recipe.cut(chosen.stages, args.epochs)
    batches = model.batches(
        splits.train,
        batch_size=args.batch_size or chosen.batch_size,
        captions_per_image=args.captions_per_image or chosen.captions_per_image,
        shuffle=True,
        augment=None if args.freeze else chosen.augment,
    )
    compile_matcher(
        model, chosen, stage, len(batches), splits.train.num_labels, **options
    )
    checkpoint = Checkpoint(f"{args.output}/checkpoint")
    checkpoint.clear()
    model.fit(
        batches,
        epochs=stage.epochs,
        callbacks=[RecallAtK(splits.val), checkpoint],
    )
    best = checkpoint.best()
    if args.freeze:
        best.cache_features(f"{args.output}/features")
    measured = evaluate(best, splits.test)
    return {
        "metrics": {key: float(value) for key, value in measured.items()},
        "history": checkpoint.history(),
    }


def format_table(
    results: Mapping[str, list[dict]], paper: Mapping[str, Mapping[str, float]]
) -> str:
    """The paper's rows beside those found here, in percent.

    Args:
        results: By row, what each seed's run gave.
        paper: By row, the paper's metrics, as fractions.

    >>> from kmatch import itmeetsal
    >>> runs = [{"metrics": {"i2t_r1": r}, "history": []} for r in (0.1, 0.2)]
    >>> table = itmeetsal.format_table({"a": runs}, {"a": {"i2t_r1": 0.406}})
    >>> [line.split() for line in table.splitlines()[2:4]]
    [['a', 'paper', '40.6'], ['here', '15.0±7.1']]
    """
    width = max(map(len, results)) + 2
    names = [metric for metric in METRICS if _has(results, metric)]
    lines = [
        " " * (width + 6) + "  ".join(f"{_title(x):>9}" for x in names),
        " " * (width + 6) + "  ".join("-" * 9 for _ in names),
    ]
    for row, runs in results.items():
        published = [paper.get(row, {}).get(metric) for metric in names]
        found = [[run["metrics"][metric] for run in runs] for metric in names]
        for title, source, cells in (
            (row, "paper", [_percent([x]) if x else "" for x in published]),
            ("", "here", [_percent(x) for x in found]),
        ):
            line = f"{title:<{width}}{source:<6}"
            line += "  ".join(f"{cell:>9}" for cell in cells)
            lines.append(line.rstrip())
    seeds = max(len(runs) for runs in results.values())
    lines.append(
        f"here: mean ± standard deviation of {seeds} seeds on the test split."
    )
    if "t2i_map" in names:
        lines.append(
            "The paper's text-to-image mAP is its R@1: it counts only the "
            "hits before each hit. Here it is the mean average precision."
        )
    for metric in WATCHED:
        ends = {
            row: [x["history"][-1][metric] for x in runs if x["history"]]
            for row, runs in results.items()
        }
        if all(ends.values()):
            means = ", ".join(f"{np.mean(x):.3f}" for x in ends.values())
            lines.append(f"{metric} in the last epoch, by row: {means}.")
    return "\n".join(lines)


def _has(results, metric):
    return all(metric in run["metrics"] for x in results.values() for run in x)


def _title(metric):
    direction, name = metric.split("_")
    return f"{direction} {name.replace('r', 'R@') if name != 'map' else 'mAP'}"


def _percent(values):
    shown = f"{100 * np.mean(values):.1f}"
    if len(values) > 1:
        shown += f"±{100 * np.std(values, ddof=1):.1f}"
    return shown


def _write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(content, indent=1))
    os.replace(temporary, path)
