"""CMPM + CMPC with MobileNet and BiLSTM on Caltech-UCSD Birds.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 4: image-to-text R@1 of 64.3 and text-to-image AP@50 of 67.9.
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
    "CMPM+CMPC (MobileNet), paper": {"i2t_r1": 0.643, "t2i_ap50": 0.679},
}

CUB = recipe.Settings(
    data="cub",
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
    recipe.run("cub_mobilenet", __doc__, CUB, PAPER, protocols={"class": PAPER})
