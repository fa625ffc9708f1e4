"""CMPM + CMPC with MobileNet and BiLSTM on Flickr30K.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 1: image-to-text R@1/5/10 of 40.3/66.9/76.7 and text-to-image
of 30.4/58.2/68.5.

Without --data-dir it trains a smaller model on embedded data: a few minutes
on two cores.
"""

from functools import partial
from types import SimpleNamespace

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM+CMPC (MobileNet), paper": {
        "i2t_r1": 0.403, "i2t_r5": 0.669, "i2t_r10": 0.767,
        "t2i_r1": 0.304, "t2i_r5": 0.582, "t2i_r10": 0.685,
    },
}  # fmt: skip

FLICKR30K = SimpleNamespace(
    image_tower=partial(
        kmatch.towers.mobilenet,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    word_embedding=512,
    units=512,
    embedding_dim=512,
    batch_norm_momentum=0.99,
    learning_rate=2e-4,
    batch_size=32,
    captions_per_image=1,
    augment="flip",
    epochs=30,
)
SHAPES = SimpleNamespace(
    image_tower=partial(kmatch.towers.mobilenet, image_size=64, alpha=0.25),
    word_embedding=64,
    units=128,
    embedding_dim=256,
    batch_norm_momentum=0.9,
    learning_rate=keras.optimizers.schedules.CosineDecay(3e-3, 188 * 12),
    batch_size=32,
    captions_per_image=5,
    augment=None,  # captions say left and right
    epochs=12,
)


def build(settings, data, weights):
    tokenizer = kmatch.text.Tokenizer.fit(data.train.captions, min_count=3)
    if settings is FLICKR30K:
        image_tower = recipe.pretrained(settings.image_tower, weights)
    else:
        image_tower = settings.image_tower(weights=weights)
    model = kmatch.Matcher(
        image_tower=image_tower,
        text_tower=kmatch.towers.bilstm(
            tokenizer, settings.units, settings.word_embedding
        ),
        embedding_dim=settings.embedding_dim,
        batch_norm_momentum=settings.batch_norm_momentum,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    )
    model.compile(
        optimizer=keras.optimizers.Adam(settings.learning_rate, epsilon=1e-8),
        loss=[
            kmatch.losses.CMPM(),
            kmatch.losses.CMPC(num_classes=data.train.num_labels),
        ],
    )
    return model


def main():
    args = recipe.arguments(__doc__, output="saved_models/flickr30k_mobilenet")
    recipe.seed(args.seed)
    data = recipe.load_data(
        "flickr30k", args.data_dir, "dataset_flickr30k.json and the images"
    )
    settings = FLICKR30K if args.data_dir else SHAPES

    checkpoint = kmatch.callbacks.Checkpoint(f"{args.output}/checkpoint")
    model = recipe.resume_or_build(
        checkpoint,
        args.resume,
        lambda: build(settings, data, args.image_weights),
    )
    model.fit(
        model.batches(
            data.train,
            batch_size=args.batch_size or settings.batch_size,
            captions_per_image=settings.captions_per_image,
            shuffle=True,
            augment=settings.augment,
        ),
        epochs=args.epochs or settings.epochs,
        initial_epoch=model.epochs_trained,
        callbacks=[kmatch.callbacks.RecallAtK(data.val), checkpoint],
    )

    best = checkpoint.best()
    print(kmatch.evaluate(best, data.test).table(PAPER))
    print(f"Exported to {kmatch.export(best, args.output)}")


if __name__ == "__main__":
    main()
