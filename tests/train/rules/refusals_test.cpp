// What an experiment is refused for, before anything runs: word for word, and under the name of the setting to change.
#include "train/experiment_fixture.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Refused {
  Words words;
  std::string message;
};

class Refusals : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  /// Of gpt on a text; the first line of it, "accepted" where nothing is refused.
  std::string of(Words more, int ranks = 0) {
    shutdown();
    Words words{"model.name=\"gpt\"", "model.hidden=16", "model.layers=2", "model.context=16", "train.batch_size=8"};
    words.push_back("data.name=\"text\"");
    words.push_back("data.path=\"" + (folder / "text").string() + "\"");
    words.insert(words.end(), more.begin(), more.end());
    ConfigRequest request;
    request.overrides = std::move(words);
    request.use_environment = false;
    request.sections = training_sections();
    try {
      check_experiment(Config::load(request).experiment(), ranks);
    } catch (const Error& error) {
      const std::string message = error.what();
      return message.substr(0, message.find('\n'));
    }
    return "accepted";
  }
  void expect_each(const std::vector<Refused>& rows) {
    for (const Refused& row : rows) EXPECT_THAT(of(row.words), HasSubstr(row.message)) << row.words.front();
  }
  const std::string two = "device.names=[\"simulated:0\", \"simulated:1\"]", on_device = "device.name=\"simulated:0\"";
};

TEST_F(Refusals, OfAnUpdateInBackwardNameWhatHasToWait) {
  const std::string on = "train.optimizer_in_backward=true", key = "train.optimizer_in_backward: ";
  expect_each({{{on, "train.micro_batches=2"},
                key + "with train.micro_batches the gradients of the parts have to add up before the update"},
               {{on, "train.clip_grad_norm=0.5"},
                key + "train.clip_grad_norm needs the norm of all gradients before the first update, and they never "
                      "exist together"},
               {{on, "train.precision=\"float16-mixed\""},
                key + "with train.precision = \"float16…\" the loss is scaled, and whether a gradient overflowed is "
                      "known after the last"},
               {{on, "train.zero_grad=\"zero\""},
                key + "train.zero_grad = \"zero\" keeps gradients that are given back in backward here: leave it at "
                      "\"none\""},
               {{on, two},
                "device.names: train.optimizer_in_backward changes a parameter before the gradients of the other "
                "devices are there"},
               {{on, two, "train.parallel=\"pipeline\""},
                "device.names: train.optimizer_in_backward changes a stage's parameters before its last micro-batch"}});
  EXPECT_EQ(of({on}), "accepted");
}

TEST_F(Refusals, OfBlocksThatRunAgainNameTheSettingThatIsTooMuch) {
  const std::string on = "train.checkpoint=true", blocks = "train.checkpoint_blocks=1",
                    budget = "train.checkpoint_budget=0.5", memory = "train.checkpoint_memory=\"1GiB\"";
  const std::string off = ": train.checkpoint is off: set it to true for blocks to run again";
  const std::string already = " says already how many blocks run again: leave one out";
  expect_each(
      {{{blocks}, "train.checkpoint_blocks" + off},
       {{budget}, "train.checkpoint_budget" + off},
       {{memory}, "train.checkpoint_memory" + off},
       {{on, blocks, budget}, "train.checkpoint_budget: train.checkpoint_blocks" + already},
       {{on, budget, memory}, "train.checkpoint_memory: train.checkpoint_budget" + already},
       {{on, blocks, memory}, "train.checkpoint_memory: train.checkpoint_blocks" + already},
       {{on, memory, "train.batch_size=\"auto\"", on_device, "device.simulated.capacity=\"1GiB\""},
        "train.checkpoint_memory: train.batch_size = \"auto\" takes the memory that fewer checkpointed blocks "
        "would need: say the batch, or train.checkpoint_blocks"},
       {{"train.checkpoint_keep=\"products\""}, "train.checkpoint_keep: train.checkpoint is off: everything is kept"},
       {{on, "train.checkpoint_blocks=3"},
        "train.checkpoint_blocks: 3 blocks are to run again, and 'gpt' has 2: say at most so many, or leave it "
        "out for all of them"}});
  for (const std::string& one : {blocks, budget, memory}) EXPECT_EQ(of({on, one}), "accepted") << one;
  EXPECT_EQ(of({on, "train.checkpoint_blocks=2"}), "accepted");
}

TEST_F(Refusals, OfWhatBlocksKeepNameWhatTheyCompute) {
  const std::string on = "train.checkpoint=true", key = "train.checkpoint_keep: ";
  expect_each(
      {{{on, "train.checkpoint_keep=\"products\"", "train.inplace_activations=true", "model.activation=\"relu\""},
        key + "with train.inplace_activations an activation overwrites the result that would be kept"},
       {{on, "train.checkpoint_keep=\"gelu\"", "train.inplace_activations=true", "model.activation=\"relu\""},
        key + "with train.inplace_activations an activation overwrites the result that would be kept"},
       {{on, "train.checkpoint_keep=\"convolutions\""},
        key + "no block of 'gpt' that runs again computes convolutions: leave it out; they compute "},
       {{on, "train.checkpoint_keep=\"nothing_known\""},
        key + "'nothing_known' is none of products, attention, convolutions, nor an operator whose results can be "
              "kept, such as gelu, layer_norm, softmax"}});
  EXPECT_EQ(
      of({on, "train.checkpoint_keep=\"attention\"", "train.inplace_activations=true", "model.activation=\"relu\""}),
      "accepted");
  EXPECT_EQ(of({on, "train.checkpoint_keep=\"products,attention,gelu\""}), "accepted");
}

TEST_F(Refusals, OfOffloadingNameWhatThereIsNothingOf) {
  const std::string sgd = "train.optimizer=\"sgd\"", still = "train.momentum=0.0";
  expect_each({{{"train.offload=\"optimizer\""},
                "train.offload: the memory of the device cpu is host memory: there is nowhere else to go"},
               {{"train.offload=\"activations\""}, "train.offload: the memory of the device cpu is host memory"},
               {{on_device, "train.offload=\"optimizer\"", sgd, still},
                "train.offload: sgd without train.momentum remembers nothing that could wait elsewhere"},
               {{on_device, "train.offload=\"both\"", sgd, still}, "train.offload: sgd without train.momentum"},
               {{on_device, "train.offload=\"activations\"", "train.checkpoint=true"},
                "train.offload: with train.checkpoint a block keeps its input alone, for its second forward pass and "
                "on the device: nothing that is saved for backward waits"},
               {{"train.optimizer_states=\"8bit\"", sgd, still},
                "train.optimizer_states: sgd without train.momentum remembers nothing that could be kept in fewer "
                "bits"}});
  EXPECT_EQ(of({on_device, "train.offload=\"optimizer\"", "train.checkpoint=true"}), "accepted");
  EXPECT_EQ(of({on_device, "train.offload=\"activations\"", sgd, still}), "accepted");
  EXPECT_EQ(of({"train.optimizer_states=\"8bit\"", sgd}), "accepted");
}

TEST_F(Refusals, OfSettingsOfSomethingThatIsOffNameWhatTurnsItOn) {
  const std::string none =
      "there are no low-rank matrices: set train.lora_rank to the rows that they are to have, or leave it out";
  expect_each({{{"train.lora_alpha=8.0"}, "train.lora_alpha: " + none},
               {{"train.lora_layers=\"qkv\""}, "train.lora_layers: " + none},
               {{"train.lora_rank=4", "train.lora_alpha=0.0"},
                "train.lora_alpha: with 0 nothing of what the matrices learn is added: set it above 0, as 16 or twice "
                "the rank"},
               {{"train.lora_rank=4", "train.quantize=\"dynamic\""},
                "train.lora_rank: train.quantize makes integers of layers that compute by themselves: merge the "
                "matrices first"},
               {{"train.lora_weights=\"int8\""},
                "train.lora_weights: weights of integers do not learn: train.lora_rank puts matrices beside them that "
                "do"},
               {{"train.quantize_batches=9"},
                "train.quantize_batches: they calibrate the scales of train.quantize = \"static\", and it is \"none\": "
                "set that, or leave it out"},
               {{"train.quantize_batches=9", "train.quantize=\"dynamic\""}, "and it is \"dynamic\": set that"},
               {{"train.master_weights=true"},
                "train.master_weights: with train.precision = \"float32\" parameters are their own masters: it is for "
                "\"bfloat16\""},
               {{"train.master_weights=true", "train.precision=\"bfloat16-mixed\""},
                "train.master_weights: with train.precision = \"bfloat16-mixed\" parameters"},
               {{"train.pipeline_balance=\"1,2\""},
                "train.pipeline_balance: there are no stages: train.parallel = \"pipeline\" makes some"}});
  EXPECT_EQ(
      of({"train.lora_rank=4", "train.lora_alpha=8.0", "train.lora_layers=\"qkv\"", "train.lora_weights=\"int8\""}),
      "accepted");
  EXPECT_EQ(of({"train.quantize=\"static\"", "train.quantize_batches=9"}), "accepted");
  EXPECT_EQ(of({"train.master_weights=true", "train.precision=\"bfloat16\""}), "accepted");
}

TEST_F(Refusals, OfOverwritingNameWhatTheModelHas) {
  const std::string on = "train.inplace_activations=true", key = "train.inplace_activations: ";
  const std::string pictures = "data.path=\"" + folder.string() + "\"", shown = "data.name=\"fashion-mnist\"";
  const auto mixed = [](const std::string& model, const std::string& more) {
    return "in mixed precision what a block of '" + model +
           "' adds has 16 bits and the stream 32, so that neither takes the other's place, and GELU and SiLU have no "
           "in-place form: leave it out" +
           more;
  };
  const std::string half = "train.precision=\"bfloat16-mixed\"";
  expect_each({{{on, half}, key + mixed("gpt", ", or set model.activation to \"relu\"")},
               {{on, half, "model.name=\"llama\""}, key + mixed("llama", "")},
               {{on, half, "model.name=\"bert\"", "model.activation=\"relu\""}, key + mixed("bert", "")},
               {{on, "model.name=\"lstm-lm\""},
                key + "of 'lstm-lm' dropout alone has an in-place form: leave it out, or set model.dropout"},
               {{on, "model.name=\"ddpm\"", shown, pictures},
                key + "'ddpm' has only SiLU and GELU, which have no in-place form: leave it out"}});
  EXPECT_EQ(of({on}), "accepted");
  EXPECT_EQ(of({on, half, "model.activation=\"relu\""}), "accepted");
  EXPECT_EQ(of({on, "model.name=\"lstm-lm\"", "model.dropout=0.1"}), "accepted");
  EXPECT_EQ(of({on, half, "model.name=\"mlp\"", shown, pictures}), "accepted");
}

TEST_F(Refusals, OfSeveralDevicesNameWhatIsOfOne) {
  const std::string pipeline = "train.parallel=\"pipeline\"";
  expect_each(
      {{{two, "train.batch_size=1"}, "device.names: 2 devices, but 1 examples at a time: raise train.batch_size"},
       {{two, "train.micro_batches=5"}, "device.names: 2 devices, but 1 examples at a time"},
       {{two, "train.chunked_loss=2"},
        "device.names: train.chunked_loss never has all outputs: set train.parallel_loss to \"each\""},
       {{two, "train.batch_size=\"auto\"", "device.simulated.capacity=\"1GiB\""},
        "train.batch_size: the largest batch is looked for on one device: set a number here"},
       {{pipeline}, "train.parallel: the stages of a pipeline lie on several devices: name them in device.names"},
       {{two, pipeline, "model.name=\"bert\""},
        "train.parallel: the model 'bert' is not made of layers one after another; mlp, resnet8, resnet18, "
        "resnet50, gpt, gpt2, llama are"},
       {{two, pipeline, "train.offload=\"activations\""},
        "train.offload: a stage keeps what its micro-batches need on its device: more micro-batches, or 1f1b, "
        "take less of it"},
       {{two, pipeline, "train.quantize=\"dynamic\""},
        "train.quantize: integers are tested on one device: train.save the model and quantize it there"},
       {{two, pipeline, "train.checkpoint=true", "train.checkpoint_budget=0.5"},
        "train.checkpoint_budget: a budget is that of one device: with stages give train.checkpoint_blocks"},
       {{two, pipeline, "train.checkpoint=true", "train.checkpoint_memory=\"1GiB\""},
        "train.checkpoint_memory: a budget is that of one device"}});
  EXPECT_EQ(of({two, "train.batch_size=2"}), "accepted");
  EXPECT_EQ(of({two, "train.batch_size=4", "train.micro_batches=2"}), "accepted");
  EXPECT_EQ(of({two, "train.chunked_loss=2", "train.parallel_loss=\"each\""}), "accepted");
  EXPECT_EQ(of({two, pipeline}), "accepted");
}

TEST_F(Refusals, OfAChunkedLossAreForModelsWithoutAVocabulary) {
  const std::string pictures = "data.path=\"" + folder.string() + "\"", shown = "data.name=\"fashion-mnist\"";
  for (const char* const chunks : {"train.chunked_loss=1", "train.chunked_loss=2"})
    EXPECT_THAT(of({"model.name=\"mlp\"", shown, pictures, chunks}),
                HasSubstr("train.chunked_loss: the model 'mlp' has no vocabulary, whose logits would be large: this is "
                          "for language models"));
  EXPECT_EQ(of({"train.chunked_loss=1"}), "accepted");
}

TEST_F(Refusals, OfDataNameTheModelOrTheDataThatDoesNotFit) {
  expect_each(
      {{{"model.name=\"mlp\""}, "data.name: the model 'mlp' learns from pictures; data.name = \"text\" has text"},
       {{"data.name=\"fashion-mnist\"", "data.path=\"" + folder.string() + "\""},
        "model.name: the model 'gpt' learns from text; data.name = \"fashion-mnist\" has pictures"}});
}

TEST_F(Refusals, OfRanksNameWhatIsOfOneProcess) {
  const std::string ranks = "distributed.name=\"mpi\"", shard = "distributed.shard=\"parameters\"";
  expect_each(
      {{{ranks, "serve.requests=2"}, "distributed.name: requests are served by one process: leave it out with [serve]"},
       {{ranks, "train.batch_size=\"auto\""},
        "train.batch_size: \"auto\" finds the largest batch of one process: with ranks give a number"},
       {{ranks, "train.optimizer_in_backward=true"},
        "train.optimizer_in_backward: ranks sum their gradients before the update, and here they are gone by then"},
       {{ranks, two},
        "device.names: each rank computes on one device, or has the stages of a pipeline on several: set device.name, "
        "or train.parallel = \"pipeline\""},
       {{ranks, "train.checkpoint=true", "train.checkpoint_memory=\"1GiB\""},
        "train.checkpoint_memory: blocks are found by runs of one process: with ranks give train.checkpoint_blocks"},
       {{ranks, shard, two, "train.parallel=\"pipeline\""},
        "distributed.shard: the stages of a pipeline are several devices of a rank, and what is divided lies on one: "
        "leave one out"},
       {{ranks, shard, "train.master_weights=true", "train.precision=\"bfloat16\""},
        "distributed.shard: with train.master_weights each rank has masters of all parameters: leave one out"},
       {{ranks, shard, "train.optimizer_states=\"8bit\""},
        "distributed.shard: train.optimizer_states keeps 256 values together, of which a rank may have a part: leave "
        "one out, or set \"optimizer\", which divides whole parameters"},
       {{ranks, shard, "train.quantize=\"dynamic\""},
        "distributed.shard: train.quantize makes integers of a whole model, and here none is whole: leave one out"}});
  EXPECT_EQ(of({ranks}), "accepted");
  EXPECT_EQ(of({ranks, shard}), "accepted");
  EXPECT_EQ(of({ranks, "distributed.shard=\"optimizer\"", "train.optimizer_states=\"8bit\""}), "accepted");
  EXPECT_EQ(of({ranks, two, "train.parallel=\"pipeline\""}), "accepted");
}

TEST_F(Refusals, OfDividedLayersNameWhatWouldHaveToBeWhole) {
  const std::string ranks = "distributed.name=\"mpi\"", divided = "train.tensor_parallel=2";
  expect_each(
      {{{divided, ranks, "model.name=\"bert\""},
        "train.tensor_parallel: the layers of the model 'bert' are not divided; those of vit, gpt, gpt2, llama are"},
       {{divided},
        "train.tensor_parallel: ranks divide the layers: set distributed.name, and start tenon under mpirun"},
       {{divided, ranks, "distributed.shard=\"optimizer\""},
        "distributed.shard: with train.tensor_parallel each rank has, and remembers, its part of the layers already: "
        "leave one out"},
       {{divided, ranks, "train.lora_rank=2"},
        "train.lora_rank: matrices beside divided layers would have to be divided with them: leave one out"},
       {{divided, ranks, "train.quantize=\"dynamic\""},
        "train.quantize: integers are made of whole layers: leave out train.tensor_parallel"},
       {{divided, ranks, "train.optimizer_states=\"8bit\""},
        "train.optimizer_states: blocks of 8 bits are those of whole parameters, and with train.tensor_parallel a rank "
        "has parts: leave one out"}});
  EXPECT_EQ(of({divided, ranks}), "accepted");
  EXPECT_EQ(of({divided, ranks}, 4), "accepted");
  EXPECT_THAT(of({divided, ranks}, 1), HasSubstr("train.tensor_parallel: 2 ranks divide the layers, and this process "
                                                 "is alone: mpirun -n 2"));
  EXPECT_THAT(of({divided, ranks}, 3), HasSubstr("train.tensor_parallel: groups of 2 ranks divide the layers, and "
                                                 "there are 3 ranks: start a multiple of 2"));
}

TEST_F(Refusals, OfServingNameTheNumbersThatDoNotFit) {
  const std::string some = "serve.requests=2", file = "\"file\"";
  const Words lengths{some, "serve.prompt_min=4", "serve.prompt_max=8", "serve.output_min=4", "serve.output_max=8"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), lengths.begin(), lengths.end());
    return more;
  };
  const std::string none = ": serving draws its parameters and keeps none: leave it out";
  expect_each(
      {{with({"train.precision=\"bfloat16-mixed\""}),
        "train.precision: mixed precision keeps weights in float32 for updates, and serving has none: bfloat16 takes "
        "half"},
       {with({"train.quantize=\"dynamic\""}),
        "train.quantize: requests are served with weights of integers or none: weight_only_int8 or weight_only_int4"},
       {with({"train.save=" + file}), "train.save" + none},
       {with({"train.resume=" + file}), "train.resume" + none},
       {with({"model.name=\"bert\""}), "model.name: the model 'bert' serves no requests; gpt, gpt2, llama do"},
       {with({"serve.prompt_max=3"}), "serve.prompt_max: 3 is less than serve.prompt_min = 4"},
       {with({"serve.output_max=3"}), "serve.output_max: 3 is less than serve.output_min = 4"},
       {with({"model.context=15"}), "model.context: 15 positions are too few for a prompt of 8 and 8 symbols after it"},
       {with({two}), "device.names: requests are served on one device: set device.name instead"}});
  EXPECT_EQ(of(lengths), "accepted") << "16 positions are just enough";
  EXPECT_EQ(of(with({"serve.prompt_max=4", "serve.output_max=4"})), "accepted") << "all of one length";
  EXPECT_EQ(of(with({"train.quantize=\"weight_only_int4\""})), "accepted");
  EXPECT_EQ(of(with({"serve.requests=1", "serve.prompt_max=3"})).find("accepted"), std::string::npos)
      << "one request is served, too";
  EXPECT_EQ(of(with({"serve.requests=0", "serve.prompt_max=3"})), "accepted") << "nothing is served";
}

TEST_F(Refusals, OfAProfileNameTheFirstStepThatItWouldRecord) {
  const Words on{"profile.enabled=true", "profile.skip_first=1", "profile.wait=2", "profile.warmup=3"};
  const auto with = [&](const char* steps) {
    Words words = on;
    words.emplace_back(steps);
    return of(words);
  };
  EXPECT_THAT(with("train.max_steps=6"),
              HasSubstr("profile.enabled: nothing would be recorded: recording begins with step 7 (skip_first + wait + "
                        "warmup are 6), and train.max_steps is 6"));
  EXPECT_EQ(with("train.max_steps=7"), "accepted");
  EXPECT_EQ(with("train.max_steps=0"), "accepted") << "as many as there are";
  EXPECT_EQ(with("profile.enabled=false"), "accepted");
  EXPECT_THAT(of({"profile.row_limit=0"}),
              HasSubstr("profile.row_limit: tables without a row say nothing: set how many, or -1 for all"));
  EXPECT_EQ(of({"profile.row_limit=1"}), "accepted");
  EXPECT_EQ(of({"profile.row_limit=-1"}), "accepted");
}

TEST_F(Refusals, OfABatchThatFillsTheMemoryNameWhatEndsIt) {
  EXPECT_THAT(of({"train.batch_size=\"auto\"", on_device, "device.simulated.mode=\"address-only\"",
                  "device.simulated.capacity=0"}),
              HasSubstr("train.batch_size"));
  EXPECT_EQ(of({"train.batch_size=\"auto\"", on_device, "device.simulated.capacity=\"1GiB\""}), "accepted");
}

}  // namespace
}  // namespace tenon::test
