"""CMPM + CMPC with MobileNet and BiLSTM on CUHK-PEDES.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Tables 3 and 6: text-to-image R@1/10 of 49.37/79.27 and image-to-text
of 57.71/91.28. Labels are persons: a caption matches every image of its own.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM+CMPC (MobileNet), paper": {
        "i2t_r1": 0.5771, "i2t_r10": 0.9128,
        "t2i_r1": 0.4937, "t2i_r10": 0.7927,
    },
}  # fmt: skip

CUHK_PEDES = recipe.Settings(
    data="cuhk_pedes",
    image_tower=partial(
        kmatch.towers.mobilenet,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    losses=recipe.cmpm_cmpc,
    batch_size=16,
    augment="flip",
    stages=[recipe.Stage(epochs=50, learning_rate=2e-4)],
)

if __name__ == "__main__":
    recipe.run("cuhk_pedes_mobilenet", __doc__, CUHK_PEDES, PAPER)
