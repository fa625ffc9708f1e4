"""ITMeetsAL's two paradigms: Table 6, with ResNet-152.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021: a modality classifier and an
uncertainty predictor apart (Figure 7), or unified in one discriminator
(Figure 4). The paper gives image-to-text figures for --data flickr30k, coco,
cuhk_pedes and flickr8k, with a fine-tuned backbone; its COCO is 1,000 images.

Without --data-dir it trains smaller models on embedded data.
"""

from kmatch import itmeetsal

SEPARATE, UNIFIED = "Figure 7: separate", "Figure 4: unified"
ROWS = {SEPARATE: {"paradigm": "separate"}, UNIFIED: {"paradigm": "unified"}}
PAPER = {
    "flickr30k": {
        SEPARATE: {"i2t_r1": 0.5530, "i2t_r10": 0.8830, "i2t_map": 0.3223},
        UNIFIED: {"i2t_r1": 0.5650, "i2t_r10": 0.8960, "i2t_map": 0.3258},
    },
    "coco": {
        SEPARATE: {"i2t_r1": 0.5700, "i2t_r10": 0.9210, "i2t_map": 0.3512},
        UNIFIED: {"i2t_r1": 0.5850, "i2t_r10": 0.9210, "i2t_map": 0.3628},
    },
    "cuhk_pedes": {
        SEPARATE: {"i2t_r1": 0.6779, "i2t_r10": 0.9375, "i2t_map": 0.3479},
        UNIFIED: {"i2t_r1": 0.6558, "i2t_r10": 0.9360, "i2t_map": 0.3417},
    },
    "flickr8k": {
        SEPARATE: {"i2t_r1": 0.3900, "i2t_r10": 0.7770, "i2t_map": 0.2233},
        UNIFIED: {"i2t_r1": 0.3990, "i2t_r10": 0.7790, "i2t_map": 0.2246},
    },
}

if __name__ == "__main__":
    itmeetsal.ablate(
        "itmeetsal_paradigms", __doc__, ROWS, PAPER, backbone="resnet152"
    )
