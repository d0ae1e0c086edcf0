"""Reads what write_events wrote with TensorBoard's own reader, and compares. Where PyTorch is there as well, its
SummaryWriter writes the same and the messages have to be equal.

python3 tests/tensorboard/read_back.py FOLDER
"""

import glob
import io
import math
import os
import sys
import tempfile

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.plugins.hparams import plugin_data_pb2

WITHOUT_LIMITS = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0}


def read(folder):
    accumulator = EventAccumulator(folder, size_guidance=WITHOUT_LIMITS)
    accumulator.Reload()
    return accumulator


def known():
    values = np.sin(np.arange(1000) * 0.7) * 3
    pixels = np.arange(180, dtype=np.uint8).reshape(3, 6, 10)
    return values, pixels


def check_scalars(folder):
    sine = read(folder).Scalars("curve/sine")
    assert [event.step for event in sine] == list(range(200))
    assert [event.wall_time for event in sine] == [1000.0 + step for step in range(200)]
    assert all(event.value == np.float32(math.sin(0.1 * event.step)) for event in sine)
    cosine = read(os.path.join(folder, "curve_both_cosine")).Scalars("curve/both")
    assert all(event.value == np.float32(math.cos(0.1 * event.step)) for event in cosine) and len(cosine) == 200


def check_histograms(folder, values):
    for tag, edges in (("values/fixed", None), ("values/auto", np.histogram_bin_edges(values, "auto"))):
        (event,) = read(folder).Histograms(tag)
        histogram = event.histogram_value
        assert np.isclose(histogram.min, values.min()) and np.isclose(histogram.max, values.max())
        assert histogram.num == 1000 and sum(histogram.bucket) == 1000
        assert np.isclose(histogram.sum, values.sum()) and np.isclose(histogram.sum_squares, values.dot(values))
        if edges is not None:
            assert np.allclose(histogram.bucket_limit, edges)
            assert list(histogram.bucket) == [0, *np.histogram(values, edges)[0]]


def check_images(folder, pixels):
    def image(tag):
        (event,) = read(folder).Images(tag)
        decoded = np.array(Image.open(io.BytesIO(event.encoded_image_string)))
        assert decoded.shape[:2] == (event.height, event.width)
        return decoded

    assert (image("image/bytes") == pixels.transpose(1, 2, 0)).all()
    floats = pixels.transpose(1, 2, 0).astype(np.float32) / np.float32(200)
    assert (image("image/floats") == (floats * np.float32(255)).clip(0, 255).astype(np.uint8)).all()
    batch = image("image/batch")
    assert batch.shape == (12, 24, 3)
    for i, picture in enumerate(pixels.reshape(10, 6, 3)):
        place = batch[i // 8 * 6 : i // 8 * 6 + 6, i % 8 * 3 : i % 8 * 3 + 3, 0]
        assert (place == picture).all()


def check_text_and_hyperparameters(folder):
    (event,) = read(folder).Tensors("notes/text_summary")
    assert event.tensor_proto.string_val[0] == b"a **bold** word"
    trial = read(os.path.join(folder, "trial"))

    def data(tag):
        content = trial.SummaryMetadata(tag).plugin_data.content
        return plugin_data_pb2.HParamsPluginData.FromString(content)

    parameters = data("_hparams_/session_start_info").session_start_info.hparams
    assert parameters["lr"].number_value == 0.1 and parameters["batch_size"].number_value == 32
    assert parameters["nesterov"].bool_value is True and parameters["allocator"].string_value == "caching"
    metrics = data("_hparams_/experiment").experiment.metric_infos
    assert [metric.name.tag for metric in metrics] == ["hparam/loss", "hparam/peak"]
    assert data("_hparams_/session_end_info").session_end_info.status == 1
    assert trial.Scalars("hparam/peak")[0].value == np.float32(1e9)


def values_in(folder):
    """(tag, step) -> the message."""
    messages = {}
    for path in glob.glob(os.path.join(folder, "events.out.tfevents.*")):
        for event in LegacyEventFileLoader(path).Load():
            for value in event.summary.value:
                messages[value.tag, event.step] = value
    return messages


def without_flags(value):
    data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
    kept = [info for info in data.experiment.hparam_infos if info.name != "nesterov"]
    if kept:
        del data.experiment.hparam_infos[:]
        data.experiment.hparam_infos.extend(kept)
    data.session_start_info.hparams.pop("nesterov", None)
    return data


def check_against_pytorch(folder, values, pixels):
    try:
        import torch
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return "not compared with PyTorch's writer, which is not there"
    with tempfile.TemporaryDirectory() as theirs:
        writer = SummaryWriter(theirs)
        writer.add_histogram("values/fixed", torch.from_numpy(values), 1)
        writer.add_histogram("values/auto", torch.from_numpy(values), 2, bins="auto")
        writer.add_text("notes", "a **bold** word", 6)
        writer.close()
        ours = values_in(folder)
        for key, value in values_in(theirs).items():
            if value.HasField("histo"):
                assert np.allclose(value.histo.bucket_limit, ours[key].histo.bucket_limit, rtol=1e-12), key
                assert list(value.histo.bucket) == list(ours[key].histo.bucket), key
            else:
                assert value.SerializeToString() == ours[key].SerializeToString(), key
        from torch.utils.tensorboard import summary

        batch = pixels.reshape(10, 1, 6, 3)
        expected = summary.image("image/batch", batch, dataformats="NCHW").value[0].image.encoded_image_string
        own = ours["image/batch", 5].image.encoded_image_string
        assert (np.array(Image.open(io.BytesIO(expected))) == np.array(Image.open(io.BytesIO(own)))).all()
        # PyTorch takes a flag for a number: bool is an int in Python.
        parameters = {"lr": 0.1, "batch_size": 32, "allocator": "caching"}
        for theirs_of in summary.hparams(parameters, {"hparam/loss": 0.5, "hparam/peak": 1e9}):
            value = theirs_of.value[0]
            mine = values_in(os.path.join(folder, "trial"))[value.tag, 0]
            assert without_flags(mine) == without_flags(value), value.tag
    return f"equal to what PyTorch {torch.__version__} writes"


def main():
    folder = sys.argv[1]
    values, pixels = known()
    check_scalars(folder)
    check_histograms(folder, values)
    check_images(folder, pixels)
    check_text_and_hyperparameters(folder)
    print("TensorBoard's reader gives back scalars, histograms, images, texts and hyperparameters;",
          check_against_pytorch(folder, values, pixels))


main()
