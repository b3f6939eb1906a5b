//===- HazardTest.cpp - files in which an exporter lost something -------------------===//
//
// The files in test/e2e/hazards were written by PyTorch's exporters; make.py there says how.
//===----------------------------------------------------------------------===//
#include "compiler/import/Hazards.h"
#include "test/unit/import/Support.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::import;

static Outcome hazard(const std::string &name, ImportOptions options = {}) {
  options.path = sourcePath("test/e2e/hazards/" + name);
  options.dims = {{"batch", 2}};
  return runImport(options);
}
static int count(const std::string &text, const std::string &what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(Hazard, GoodFilesAreImported) {
  for (const char *name : {"good-gpt2", "good-llama"}) {
    const Outcome outcome = hazard(name);
    EXPECT_TRUE(outcome.ok) << name << ": " << outcome.error;
    EXPECT_EQ(outcome.warnings, "") << name;
  }
}

TEST(Hazard, WhatTorchScriptCannotSayIsSaid) {
  for (const char *name : {"torchscript-gpt2", "torchscript-llama"}) {
    const Outcome outcome = hazard(name);
    EXPECT_TRUE(outcome.ok) << name << ": " << outcome.error;
    EXPECT_EQ(count(outcome.warnings, "does not say what detach()"), 1) << name << ": " << outcome.warnings;
    EXPECT_EQ(count(outcome.warnings, "does not say which initializers are parameters"), 1) << name;
    EXPECT_EQ(count(outcome.warnings, "\n"), 2) << name;
  }
}

TEST(Hazard, OptimizedParametersAreListed) {
  const Outcome outcome = hazard("optimized");
  EXPECT_NE(outcome.error.find("the exporter optimized this model"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("'transformer.h.0.attn.c_attn.bias'"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("optimize=False"), std::string::npos);
}

TEST(Hazard, FoldedTorchScriptWeightsAreNamed) {
  const Outcome outcome = hazard("torchscript-folded");
  EXPECT_TRUE(outcome.ok) << outcome.error;
  EXPECT_NE(outcome.warnings.find("weights have lost their names"), std::string::npos) << outcome.warnings;
  EXPECT_NE(outcome.warnings.find("'onnx::MatMul_"), std::string::npos) << outcome.warnings;
}

TEST(Hazard, LostAttentionDropoutIsAChoice) {
  using Dropout = ImportOptions::Dropout;
  const Outcome refused = hazard("attention-dropout-lost");
  EXPECT_NE(refused.error.find("node 'node_Dropout_"), std::string::npos) << refused.error;
  EXPECT_NE(refused.error.find("--dropout=as-written|force|off"), std::string::npos);
  auto dropouts = [](Dropout choice) {
    ImportOptions options;
    options.dropout = choice;
    const Outcome outcome = hazard("attention-dropout-lost", options);
    EXPECT_TRUE(outcome.ok) << outcome.error;
    return count(outcome.text, "train.dropout");
  };
  const int written = dropouts(Dropout::AsWritten), forced = dropouts(Dropout::Force);
  EXPECT_GT(written, 0);
  EXPECT_GT(forced, written);
  EXPECT_EQ(dropouts(Dropout::Off), 0);
}

TEST(Hazard, LostLabelSmoothingIsRefused) {
  EXPECT_NE(hazard("label-smoothing-lost").error.find("the exporter lost label_smoothing=0.1"), std::string::npos);
}

TEST(Hazard, ABatchFixedAt1IsRefused) {
  const Outcome outcome = hazard("batch-fixed-at-1");
  EXPECT_NE(outcome.error.find("input 'input_ids' has a first dimension fixed at 1, but the micro-batch is 2"),
            std::string::npos)
      << outcome.error;
  ImportOptions options;
  options.path = sourcePath("test/e2e/hazards/batch-fixed-at-1");
  options.dims = {{"batch", 1}}; // what the file is made for
  EXPECT_TRUE(runImport(options).ok);
}

TEST(Hazard, EveryInputNeedsTheBatch) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "z" }
    node { op_type: "Add" input: ["z", "x2"] output: "y" })");
  onnx::ValueInfoProto &second = *model.mutable_graph()->add_input();
  second = model.graph().input(0);
  second.set_name("x2");
  second.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(1);
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->Clear();
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("batch");
  ImportOptions options;
  options.dims = {{"batch", 4}};
  EXPECT_NE(runImport(model, options)
                .error.find("input 'x2' has a first dimension fixed at 1, but 'batch', which input "
                            "'x' has, is 4"),
            std::string::npos);
  EXPECT_NE(runImport(model).error.find("add --dim batch=N"), std::string::npos);
}

TEST(Hazard, ASharedScaleOfOnesIsRefused) {
  const std::string nodes = R"(node { op_type: "LayerNormalization" input: ["x", "s.0"] output: "z" }
    node { op_type: "LayerNormalization" input: ["z", "s.0"] output: "y" })";
  const auto scaled = [&](const char *values) {
    return smallModel(
        (nodes + R"(initializer { name: "s.0" data_type: 1 dims: 3 float_data: [)" + values + "] }").c_str());
  };
  EXPECT_NE(runImport(scaled("1, 1, 1")).error.find("'s.0'; where a tool stored equal parameters once"),
            std::string::npos);
  EXPECT_TRUE(runImport(scaled("1, 2, 3")).ok); // trained, and so one
  ImportOptions options;
  options.trainable = {"s"};
  EXPECT_TRUE(runImport(scaled("1, 1, 1"), options).ok);
}

TEST(Hazard, ReadsThePaddingOfAnEmbedding) {
  onnx::NodeProto node;
  onnx::StringStringEntryProto &entry = *node.add_metadata_props();
  entry.set_key("pkg.torch.onnx.fx_node");
  const auto padding = [&](const std::string &target, const std::string &arguments, const std::string &keywords) {
    entry.set_value("%y : [num_users=1] = call_function[target=" + target + "](args = (" + arguments + "), kwargs = {" +
                    keywords + "})");
    return paddingIndexOf(node);
  };
  const std::string embedding = "torch.ops.aten.embedding.default";
  EXPECT_EQ(padding(embedding, "%w, %i, 7", ""), 7);
  EXPECT_EQ(padding(embedding, "%w, %i", "padding_idx: 3"), 3);
  EXPECT_EQ(padding(embedding, "%w, %i", ""), std::nullopt);
  EXPECT_EQ(padding(embedding, "%w, %i, -1", ""), std::nullopt);
  EXPECT_EQ(padding(embedding, "%w, %i, %n", ""), std::nullopt);
  EXPECT_EQ(padding("torch.ops.aten.index_select.default", "%w, 0, 7", ""), std::nullopt);
}

TEST(Hazard, ReadsTheCallThatANodeCameFrom) {
  onnx::NodeProto node;
  onnx::StringStringEntryProto &entry = *node.add_metadata_props();
  entry.set_key("pkg.torch.onnx.fx_node");
  entry.set_value("%y : [num_users=1] = call_function[target=torch.ops.aten.cross_entropy_loss.default](args = (%a, "
                  "%b, None, 1, [-100, 2], 0.1), kwargs = {scale: 0.5})");
  const FxCall call = fxCallOf(node);
  EXPECT_EQ(call.target, "torch.ops.aten.cross_entropy_loss.default");
  EXPECT_EQ(call.arguments, (std::vector<std::string>{"%a", "%b", "None", "1", "[-100, 2]", "0.1"}));
  EXPECT_EQ(call.keywords, (std::vector<std::pair<std::string, std::string>>{{"scale", "0.5"}}));
  EXPECT_EQ(lostLabelSmoothing(node), 0.1);
  for (const char *text :
       {"", "(args = (), kwargs = {})", "target=](args = (, kwargs = {})", "target=a](args = (", "})"}) {
    entry.set_value(text);
    EXPECT_EQ(lostLabelSmoothing(node), 0) << text;
  }
}
