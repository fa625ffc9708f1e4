"""Towers: raw features of one modality in, features out."""

from kmatch.towers.image import mobilenet as mobilenet
from kmatch.towers.image import resnet50 as resnet50
from kmatch.towers.image import resnet152 as resnet152
from kmatch.towers.image import vgg16 as vgg16
from kmatch.towers.image import vgg19 as vgg19
from kmatch.towers.text import bilstm as bilstm
from kmatch.towers.tower import Tower as Tower
