"""CMPM + CMPC with MobileNet and BiLSTM on Oxford-102 Flowers.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 4: image-to-text R@1 of 68.9 and text-to-image AP@50 of 69.7.
Labels are classes, and those of the test split are unseen in training.
The paper gives neither batch size nor epochs: they are CUHK-PEDES's.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM+CMPC (MobileNet), paper": {"i2t_r1": 0.689, "t2i_ap50": 0.697},
}

FLOWERS = recipe.Settings(
    data="flowers",
    image_tower=partial(
        kmatch.towers.mobilenet,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    losses=recipe.cmpm_cmpc,
    batch_size=16,
    augment="flip",
    monitor="val_t2i_ap50",
    stages=[recipe.Stage(epochs=50, learning_rate=2e-4)],
)

if __name__ == "__main__":
    recipe.run(
        "flowers_mobilenet", __doc__, FLOWERS, PAPER, protocols={"class": PAPER}
    )
