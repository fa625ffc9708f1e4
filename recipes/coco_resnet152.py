"""CMPM with ResNet-152 and BiLSTM on MSCOCO.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018, Table 2: image-to-text R@1/5/10 of 31.1/60.7/73.9 and text-to-image
of 22.9/50.2/63.8 among 5,000 test images; 56.1/86.3/92.9 and 44.6/78.8/89.0
among 1,000, the mean of five folds. As in section 4.1, the image encoder is
fixed for 15 epochs; then the whole model is trained for 30 more at a tenth of
the rate.

Without --data-dir it trains a smaller model on embedded data: some minutes
on two cores.
"""

from functools import partial

import keras

import kmatch
from kmatch import recipe

PAPER = {
    "CMPM (ResNet-152), paper": {
        "i2t_r1": 0.311, "i2t_r5": 0.607, "i2t_r10": 0.739,
        "t2i_r1": 0.229, "t2i_r5": 0.502, "t2i_r10": 0.638,
    },
}  # fmt: skip
PAPER_1K = {
    "CMPM (ResNet-152), paper": {
        "i2t_r1": 0.561, "i2t_r5": 0.863, "i2t_r10": 0.929,
        "t2i_r1": 0.446, "t2i_r5": 0.788, "t2i_r10": 0.890,
    },
}  # fmt: skip

COCO = recipe.Settings(
    data="coco",
    image_tower=partial(
        kmatch.towers.resnet152,
        image_size=224,
        kernel_regularizer=keras.regularizers.L2(2e-5),
    ),
    losses=recipe.cmpm,
    batch_size=64,
    augment="flip",
    stages=[
        recipe.Stage(
            epochs=15,
            learning_rate=2e-4,
            freeze_image_tower=True,
            cache_features=True,
        ),
        recipe.Stage(epochs=30, learning_rate=2e-5),
    ],
)

if __name__ == "__main__":
    recipe.run(
        "coco_resnet152", __doc__, COCO, PAPER, protocols={"coco-1k": PAPER_1K}
    )
