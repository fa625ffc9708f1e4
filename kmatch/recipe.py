"""What the recipes share: their settings, command line and way through."""

import argparse
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import keras

# Recipes import Keras first, before kmatch can set TensorFlow's log level;
# with its text library TensorFlow reads it again.
import tensorflow_text  # noqa: F401

from kmatch import data
from kmatch.callbacks import Checkpoint, RecallAtK
from kmatch.losses import CMPC, CMPM
from kmatch.losses.base import MatchingLoss
from kmatch.matchers import Matcher
from kmatch.retrieval import evaluate
from kmatch.serving import export
from kmatch.text import Tokenizer
from kmatch.towers import Tower, bilstm, mobilenet

# A number, or a function of (steps per epoch, epochs) that gives a schedule.
Rate = (
    float
    | Callable[[int, int], keras.optimizers.schedules.LearningRateSchedule]
)


def cosine(rate: float) -> Rate:
    """A rate that falls to zero by a stage's end, along a cosine."""
    return lambda steps, epochs: keras.optimizers.schedules.CosineDecay(
        rate, steps * epochs
    )


def piecewise(rate: float, changes: Mapping[int, float]) -> Rate:
    """A rate that changes after so many epochs of a stage.

    Args:
        rate: Rate at first.
        changes: By the number of epochs done, the rate from then on.

    >>> from kmatch import recipe
    >>> schedule = recipe.piecewise(5e-4, {8: 1e-4})(10, 9)
    >>> [round(float(schedule(step)), 5) for step in (0, 79, 80)]
    [0.0005, 0.0005, 0.0001]
    """
    return lambda steps, epochs: (
        keras.optimizers.schedules.PiecewiseConstantDecay(
            # Keras counts steps from 0 and a boundary to what is before it.
            [steps * done - 1 for done in changes],
            [rate, *changes.values()],
        )
    )


def cmpm(num_labels: int) -> list[MatchingLoss]:
    """Matching alone: the papers' "CMPM" rows."""
    return [CMPM()]


def cmpm_cmpc(num_labels: int) -> list[MatchingLoss]:
    """Matching and classification: the paper's "CMPM+CMPC" rows, Eq 11."""
    return [CMPM(), CMPC(num_classes=num_labels)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of the training, with an optimizer of its own.

    Attributes:
        epochs: How long it lasts.
        learning_rate: A number, `cosine(…)` or `piecewise(…)`.
        freeze_image_tower: Whether the image tower stays as it is. Its batch
            normalisation then runs on its own statistics.
        cache_features: Whether the frozen tower's features are computed once
            and kept in the output's folder `features/`.
    """

    epochs: int
    learning_rate: Rate = 2e-4
    freeze_image_tower: bool = False
    cache_features: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """An experiment. Defaults are those of Zhang & Lu and of their code.

    Attributes:
        data: Name of the data set, as `kmatch.data.load` knows it.
        data_options: More arguments for `kmatch.data.load`.
        image_tower: Function of `weights` that gives a `Tower`.
        image_weights: What it starts from without `--image-weights`.
        losses: Function of the number of training labels.
        stages: What follows on what.
        batch_size: Images per step.
        captions_per_image: Captions that are shown with an image.
        augment: As for `Matcher.batches`.
        min_count: How often a word occurs before it is in the vocabulary.
        word_embedding: Dimensions of the word embedding.
        units: LSTM units per direction.
        dropout: On the LSTM's inputs and outputs.
        embedding_dim: Dimensions of the shared space.
        batch_norm_momentum: Of the joint embedding.
        standardize_features: As for `Matcher`.
        kernel_regularizer: Of the joint embedding.
        monitor: What makes an epoch the best one.
    """

    data: str
    data_options: Mapping = dataclasses.field(default_factory=dict)
    image_tower: Callable[..., Tower]
    image_weights: str | None = "imagenet"
    losses: Callable[[int], list[MatchingLoss]] = cmpm_cmpc
    stages: Sequence[Stage]
    batch_size: int = 32
    captions_per_image: int = 1
    augment: str | None = "flip"
    min_count: int = 3
    word_embedding: int = 512
    units: int = 512
    dropout: float = 0.3
    embedding_dim: int = 512
    batch_norm_momentum: float = 0.99
    standardize_features: bool = False
    kernel_regularizer: keras.Regularizer | None = keras.regularizers.L2(2e-5)
    monitor: str = "val_rsum"


# What every recipe trains on without --data-dir.
SHAPES = Settings(
    data="shapes",
    image_tower=partial(
        mobilenet, image_size=64, alpha=0.25, batch_norm_momentum=0.9
    ),
    image_weights=None,
    stages=[Stage(epochs=4, learning_rate=cosine(6e-3))],
    batch_size=64,
    captions_per_image=3,  # an image comes twice an epoch: with 3, with 2
    augment=None,  # captions say left and right
    word_embedding=64,
    units=64,
    dropout=0.0,  # every word of these captions counts
    embedding_dim=128,
    batch_norm_momentum=0.9,
)


def run(
    name: str,
    description: str,
    settings: Settings,
    paper: Mapping[str, Mapping[str, float]],
    **options,
):
    """Runs a recipe from its command line to the exported model.

    Args:
        name: The recipe's; that of its folder in `saved_models/`.
        description: The recipe's docstring.
        settings: For the real data set.
        paper: Rows to print beside the result, as fractions.
        **options: More arguments for `follow`.
    """
    args = parser(description, output=f"saved_models/{name}").parse_args()
    follow(args, settings, paper, **options)


def follow(
    args: argparse.Namespace,
    settings: Settings,
    paper: Mapping[str, Mapping[str, float]],
    build: Callable[..., Matcher] | None = None,
    compile: Callable[..., None] | None = None,
    protocols: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
):
    """Runs a recipe whose command line is read.

    Args:
        args: What `parser` reads, and perhaps more.
        settings: For the real data set.
        paper: Rows to print beside the result, as fractions.
        build: In place of `build_matcher`.
        compile: In place of `compile_matcher`.
        protocols: Further tables for the real data set: by protocol of
            `kmatch.evaluate`, the rows to print beside the result.
    """
    seed(args.seed)
    settings, splits = load_data(settings, args.data_dir)
    best = train(
        settings,
        splits,
        args,
        build or build_matcher,
        compile or compile_matcher,
    )
    print(evaluate(best, splits.test).table(paper))
    if args.data_dir:
        for protocol, rows in (protocols or {}).items():
            report = evaluate(best, splits.test, protocol=protocol)
            print(f"\nProtocol {protocol}:\n{report.table(rows)}")
    print(f"Exported to {export(best, args.output)}")


def parser(
    description: str, output: str, resume: bool = True
) -> argparse.ArgumentParser:
    """Makes the command line that all recipes understand.

    Args:
        description: The recipe's docstring.
        output: Default folder of the exported model.
        resume: Whether it has `--resume`.
    """
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data-dir", help="folder of the data set; default: embedded data")
    add("--epochs", type=_count, help="in all stages; default: the recipe's")
    add(
        "--batch-size",
        type=_count,
        help="images per step; default: the recipe's",
    )
    add("--image-weights", help="weights file for the image tower, without top")
    add("--output", default=output, help="default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    if resume:
        add(
            "--resume",
            action="store_true",
            help="go on with an interrupted run of the same output",
        )
    return parser


def _count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def seed(number: int):
    """Makes a run repeatable: weights, dropout, and the order of the data."""
    keras.utils.set_random_seed(number)


def load_data(
    settings: Settings, root: str | os.PathLike | None
) -> tuple[Settings, data.Splits]:
    """Loads the data set, or without a folder the embedded one.

    Args:
        settings: For the real data set.
        root: Its folder, or None.

    Returns:
        The settings to use, and the data set's splits.
    """
    if root is not None:
        return settings, data.load(settings.data, root, **settings.data_options)
    print(
        "Training on the embedded data set 'shapes'; for the real one, pass "
        f"--data-dir with {data.FILES[settings.data]}."
    )
    return stand_in(settings), data.load("shapes")


def stand_in(settings: Settings) -> Settings:
    """Gives the settings with which a recipe trains on embedded data.

    A recipe keeps its losses and, where it has several stages, a short first
    one with a frozen image tower. A tower that starts from random weights is
    never frozen throughout.
    """
    stages = SHAPES.stages
    if len(settings.stages) > 1:
        first = dataclasses.replace(
            settings.stages[0], epochs=1, learning_rate=1e-3
        )
        stages = [first, *stages]
    return dataclasses.replace(SHAPES, losses=settings.losses, stages=stages)


def build_matcher(
    settings: Settings,
    splits: data.Splits,
    image_tower: Tower,
    matcher: type[Matcher] = Matcher,
    **options,
) -> Matcher:
    """Builds the paper's model, not compiled yet.

    Args:
        settings: The recipe's.
        splits: The data set's.
        image_tower: The image tower.
        matcher: `Matcher` or a kind of it.
        **options: More arguments for it.
    """
    tokenizer = Tokenizer.fit(splits.train.captions, settings.min_count)
    return matcher(
        image_tower=image_tower,
        text_tower=bilstm(
            tokenizer,
            settings.units,
            settings.word_embedding,
            settings.dropout,
        ),
        embedding_dim=settings.embedding_dim,
        batch_norm_momentum=settings.batch_norm_momentum,
        standardize_features=settings.standardize_features,
        kernel_regularizer=settings.kernel_regularizer,
        **options,
    )


def compile_matcher(
    model: Matcher,
    settings: Settings,
    stage: Stage,
    steps: int,
    num_labels: int,
):
    """Configures a stage as the paper does; the losses' weights stay.

    Args:
        model: What to compile.
        settings: The recipe's.
        stage: The stage that begins.
        steps: Steps per epoch.
        num_labels: Number of training labels.
    """
    model.compile(
        keras.optimizers.Adam(learning_rate(stage, steps), epsilon=1e-8),
        loss=model.matching_losses or settings.losses(num_labels),
    )


def learning_rate(stage: Stage, steps: int):
    """A stage's rate as an optimizer takes it."""
    rate = stage.learning_rate
    return rate(steps, stage.epochs) if callable(rate) else rate


def train(
    settings: Settings,
    splits: data.Splits,
    args: argparse.Namespace,
    build: Callable[..., Matcher] = build_matcher,
    compile: Callable[..., None] = compile_matcher,
) -> Matcher:
    """Trains through all stages, or goes on where a run was interrupted.

    Args:
        settings: What to train.
        splits: On what.
        args: The command line's.
        build: Function of (settings, splits, image tower).
        compile: Function of (model, settings, stage, steps, num_labels).

    Returns:
        The model after the best epoch.
    """
    checkpoint = Checkpoint(f"{args.output}/checkpoint", settings.monitor)
    model = resume(checkpoint) if args.resume else None
    if model is None:
        checkpoint.clear()
        weights = args.image_weights or settings.image_weights
        tower, weights = pretrained(settings.image_tower, weights)
        settings = dataclasses.replace(settings, image_weights=weights)
        model = build(settings, splits, tower)
    callbacks = [RecallAtK(splits.val), checkpoint]
    end = 0
    for stage in cut(settings.stages, args.epochs):
        begin, end = end, end + stage.epochs
        if model.epochs_trained >= end:
            continue
        begins = model.epochs_trained == begin
        if begins:
            model.freeze_image_tower = stage.freeze_image_tower
        if stage.cache_features:
            model.cache_features(f"{args.output}/features")
        batches = model.batches(
            splits.train,
            batch_size=args.batch_size or settings.batch_size,
            captions_per_image=settings.captions_per_image,
            shuffle=True,
            augment=settings.augment,
        )
        if begins:
            num_labels = splits.train.num_labels
            compile(model, settings, stage, len(batches), num_labels)
        elif callable(stage.learning_rate):
            # With more --epochs than before, it falls more slowly.
            rate = learning_rate(stage, len(batches))
            model.optimizer.learning_rate = rate
        model.fit(
            batches,
            epochs=end,
            initial_epoch=model.epochs_trained,
            callbacks=callbacks,
        )
    return checkpoint.best()


def resume(checkpoint: Checkpoint) -> Matcher | None:
    """Loads the model of an interrupted run, and says how far it was."""
    model = checkpoint.last()
    if model is None:
        print(f"Nothing to resume in {checkpoint.directory}: starting anew.")
    else:
        print(f"Resuming after epoch {model.epochs_trained}.")
    return model


def pretrained(
    tower: Callable[..., Tower], weights: str | None
) -> tuple[Tower, str | None]:
    """Builds an image tower from a file or from Keras's ImageNet weights.

    Where these cannot be fetched, it says so and starts from random weights.

    Returns:
        The tower, and what it started from.
    """
    try:
        return tower(weights=weights), weights
    except ConnectionError as error:
        print(f"THE IMAGE TOWER STARTS FROM RANDOM WEIGHTS. {error}")
        return tower(weights=None), None


def cut(stages: Sequence[Stage], epochs: int | None) -> list[Stage]:
    """Cuts the stages short, or lengthens the last, to so many epochs."""
    if epochs is None:
        return list(stages)
    *others, last = stages
    kept = []
    for stage in others:
        kept.append(
            dataclasses.replace(stage, epochs=min(stage.epochs, epochs))
        )
        epochs -= kept[-1].epochs
    return [*kept, dataclasses.replace(last, epochs=epochs)]
