"""CMPM + CMPC with MobileNet and BiLSTM on MSCOCO.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 2: image-to-text R@1/5/10 of 24.6/52.3/66.4 and text-to-image
of 19.1/44.6/58.4 among 5,000 test images; 52.9/83.8/92.1 and 41.3/74.6/85.9
among 1,000, the mean of five folds. The paper gives neither batch size nor
epochs: the former is that of its ResNet-152, the latter Flickr30K's.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM+CMPC (MobileNet), paper": {
        "i2t_r1": 0.246, "i2t_r5": 0.523, "i2t_r10": 0.664,
        "t2i_r1": 0.191, "t2i_r5": 0.446, "t2i_r10": 0.584,
    },
}  # fmt: skip
PAPER_1K = {
    "CMPM+CMPC (MobileNet), paper": {
        "i2t_r1": 0.529, "i2t_r5": 0.838, "i2t_r10": 0.921,
        "t2i_r1": 0.413, "t2i_r5": 0.746, "t2i_r10": 0.859,
    },
}  # fmt: skip

COCO = recipe.Settings(
    data="coco",
    image_tower=partial(
        kmatch.towers.mobilenet,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    losses=recipe.cmpm_cmpc,
    batch_size=64,
    augment="flip",
    stages=[recipe.Stage(epochs=30, learning_rate=2e-4)],
)

if __name__ == "__main__":
    recipe.run(
        "coco_mobilenet", __doc__, COCO, PAPER, protocols={"coco-1k": PAPER_1K}
    )
