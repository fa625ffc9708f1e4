"""Time of a training step on the CPU, with freed memory kept and without.

    python benchmarks/training_step.py [--rounds 3]

Trains the recipes' stand-in for some steps in a new process each, in turns:
once as glibc is, and once after `kmatch.memory.keep_freed_memory()`. The best
of the rounds counts, as other work on the machine only ever slows them down.
"""

import argparse
import multiprocessing
import resource
import time

STEPS = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    context = multiprocessing.get_context("spawn")
    best = {}
    for _ in range(rounds):
        for keep in (False, True):
            with context.Pool(1) as pool:
                measured = pool.apply(measure, [keep])
            best[keep] = tuple(map(min, measured, best.get(keep, measured)))
    print(f"\nBest of {rounds} rounds of {STEPS} steps\n")
    print("| freed memory | ms/step | CPU ms/step | of which the kernel |")
    print("|---|---|---|---|")
    for keep, (wall, cpu, kernel) in best.items():
        name = "kept" if keep else "given back"
        print(f"| {name} | {wall:.0f} | {cpu:.0f} | {kernel:.0f} |")
    print(f"\nKept, a step takes {best[True][0] / best[False][0]:.2f} as long.")


def measure(keep):
    """Milliseconds per step: on the clock, of the CPU, of the kernel."""
    import keras

    import kmatch
    from kmatch import memory, recipe

    if keep:
        memory.keep_freed_memory()
    recipe.seed(0)
    settings, splits = recipe.SHAPES, kmatch.data.load("shapes")
    model = recipe.build_matcher(
        settings, splits, settings.image_tower(weights=None)
    )
    batches = model.batches(
        splits.train, settings.batch_size, settings.captions_per_image
    )
    recipe.compile_matcher(
        model, settings, settings.stages[0], len(batches), 6000
    )
    clocks = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            usage = resource.getrusage(resource.RUSAGE_SELF)
            cpu = usage.ru_utime + usage.ru_stime
            clocks.append((time.perf_counter(), cpu, usage.ru_stime))

    model.fit(batches.take(10 + STEPS), verbose=0, callbacks=[Clock()])
    return tuple(
        1000 * (end - begin) / STEPS
        for begin, end in zip(clocks[9], clocks[-1])
    )


if __name__ == "__main__":
    main()
