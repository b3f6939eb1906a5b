//===- ModelTest.cpp - what an imported model holds ----------------------------------===//
#include "test/unit/import/Support.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::import;

namespace {
Outcome example(const std::string &name, ImportOptions options = {}) {
  options.path = sourcePath("test/e2e/hazards/" + name);
  options.dims = {{"batch", 3}};
  return runImport(options);
}
bool holds(const std::string &text, const std::string &what) { return text.find(what) != std::string::npos; }
const std::string add = R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })";
} // namespace

TEST(Model, TiedWeightsAreOneVariableWithAliases) {
  const std::string text = example("good-gpt2").text;
  EXPECT_TRUE(holds(text, "@lm_head.weight")) << text;
  EXPECT_TRUE(holds(text, "aliases = [\"transformer.wte.weight\"]"));
  EXPECT_FALSE(holds(text, "@transformer.wte.weight"));
}

TEST(Model, TheMaskDoesNotRepeatOverTheBatch) {
  for (const char *name : {"good-gpt2", "good-llama"}) {
    const std::string text = example(name).text;
    EXPECT_TRUE(holds(text, "-3.40282347E+38") || holds(text, "dense_resource")) << name;
    EXPECT_FALSE(holds(text, ": tensor<3x1x")) << name; // as a constant; activations have the heads second
  }
}

TEST(Model, RotaryTablesAreConstants) {
  const std::string text = example("good-llama").text;
  EXPECT_FALSE(holds(text, "inv_freq"));
  EXPECT_FALSE(holds(text, "train.cos"));
  EXPECT_FALSE(holds(text, "train.sin"));
}

TEST(Model, TheSameFileGivesTheSameText) { EXPECT_EQ(example("good-llama").text, example("good-llama").text); }

TEST(Model, RegexesChooseWhatIsTrained) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Mul" input: ["x", "scale"] output: "z" }
    node { op_type: "Add" input: ["z", "w.0"] output: "y" }
    initializer { name: "scale" data_type: 1 dims: 3 float_data: [1, 2, 3] })");
  EXPECT_FALSE(holds(runImport(model).text, "@scale")); // a small buffer is folded
  ImportOptions options;
  options.trainable = {"^scale$"};
  EXPECT_TRUE(holds(runImport(model, options).text, "parameter @scale"));
  options.frozen = {"w\\."};
  const std::string text = runImport(model, options).text;
  EXPECT_EQ(text.find("trainable"), text.rfind("trainable"));
  options.frozen = {"nothing"};
  EXPECT_TRUE(holds(runImport(model, options).error, "--frozen 'nothing' matches no float initializer"));
  options.frozen = {"("};
  EXPECT_TRUE(holds(runImport(model, options).error, "--frozen '(' is no regular expression"));
  options.frozen = {"scale|w"};
  EXPECT_TRUE(holds(runImport(model, options).error, "the loss depends on no trainable parameter"));
}

// Of producers other than PyTorch.
TEST(Model, SaysWhatCouldBeTrained) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Mul" input: ["x", "scale"] output: "z" }
    node { op_type: "Add" input: ["z", "w.0"] output: "y" }
    initializer { name: "scale" data_type: 1 dims: 3 float_data: [1, 2, 3] })");
  ImportOptions options;
  options.frozen = {"w"};
  EXPECT_TRUE(holds(runImport(model, options).error, "with --trainable REGEX; there are --trainable '^("))
      << runImport(model, options).error;
  EXPECT_TRUE(holds(runImport(model, options).error, "scale"));
  model = smallModel(R"(node { op_type: "Constant" output: "scale"
      attribute { name: "value" type: 4 t { data_type: 1 dims: 3 float_data: [1, 2, 3] } } }
    node { op_type: "Mul" input: ["x", "scale"] output: "z" } node { op_type: "Add" input: ["z", "w.0"] output: "y" })");
  options.trainable = {"scale"};
  EXPECT_TRUE(holds(runImport(model, options).error, "--trainable 'scale' matches no float initializer"));
  options.trainable.clear();
  model.mutable_graph()->mutable_initializer(0)->set_name("w");
  for (onnx::NodeProto &node : *model.mutable_graph()->mutable_node())
    for (std::string &input : *node.mutable_input())
      input = input == "w.0" ? "w" : input;
  EXPECT_TRUE(holds(runImport(model, options).error, "there are --trainable '^(w)$'"))
      << runImport(model, options).error;
}

TEST(Model, ChoosesTheLoss) {
  onnx::ModelProto model = smallModel(add);
  onnx::ValueInfoProto &logits = *model.mutable_graph()->add_output();
  logits.set_name("y");
  *logits.mutable_type() = model.graph().input(0).type();
  EXPECT_TRUE(runImport(model).ok); // "loss" is the only float of rank 0
  ImportOptions options;
  options.losses = {{"y", 1}};
  EXPECT_TRUE(holds(runImport(model, options).error, "output 'y' is float32 [2, 3], but the loss must be one float"));
  options.losses = {{"z", 1}};
  EXPECT_TRUE(
      holds(runImport(model, options).error, "--loss 'z' is no output of the model; its outputs are 'loss', 'y'"));
  model.mutable_graph()->mutable_output(0)->clear_type();
  EXPECT_TRUE(runImport(model).ok); // by its name, of unknown rank
  options.losses = {{"loss", 1}};
  EXPECT_TRUE(runImport(model, options).ok);
}

TEST(Model, BindsDimensions) {
  onnx::ModelProto model = smallModel(add);
  auto &type = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(0)->Clear();
  type.mutable_shape()->mutable_dim(0)->set_dim_param("2*rows + 1");
  EXPECT_TRUE(holds(runImport(model).error, "dimension 'rows' has no size; add --dim rows=N"));
  ImportOptions options;
  options.dims = {{"rows", 3}};
  EXPECT_TRUE(holds(runImport(model, options).text, "tensor<7x3xf32> {train.input = \"x\"}"));
  for (const bool negative : {false, true}) { // as tf2onnx and others write it
    type.mutable_shape()->mutable_dim(0)->Clear();
    negative ? type.mutable_shape()->mutable_dim(0)->set_dim_value(-1)
             : type.mutable_shape()->mutable_dim(0)->set_dim_param("?");
    options.dims = {{"batch", 4}};
    EXPECT_TRUE(holds(runImport(model, options).text, "tensor<4x3xf32> {train.input = \"x\"}"));
    EXPECT_TRUE(holds(runImport(model).error, "'batch'")) << runImport(model).error;
  }
  type.mutable_shape()->mutable_dim(0)->Clear();
  type.mutable_shape()->mutable_dim(0)->set_dim_param("2*rows + 1");
  options.dims = {{"rows", 3}, {"columns", 3}};
  EXPECT_TRUE(holds(runImport(model, options).error,
                    "--dim columns: no input of the model has a dimension of this name; "
                    "there are 'rows'"));
}

TEST(Model, InlinesFunctions) {
  onnx::ModelProto model = smallModel(R"(
    node { name: "call" op_type: "AddScaled" domain: "mine" input: ["x", "w.0"] output: "y"
           attribute { name: "by" f: 3 type: 1 } })",
                                      R"(opset_import { domain: "mine" version: 1 }
    functions { name: "AddScaled" domain: "mine" input: ["a", "b"] output: "c" attribute: "by" opset_import { version: 20 }
      node { op_type: "Constant" output: "k" attribute { name: "value_float" type: 1 ref_attr_name: "by" } }
      node { op_type: "Mul" input: ["b", "k"] output: "s" }
      node { op_type: "Add" input: ["a", "s"] output: "c" } })");
  const std::string text = runImport(model).text;
  EXPECT_TRUE(holds(text, "dense<3.000000e+00>")) << text;
  EXPECT_TRUE(holds(text, "train.add"));
}

TEST(Model, RefusesFunctionsWithoutEnd) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "F" domain: "mine" input: "x" output: "y" })",
                                      R"(functions { name: "F" domain: "mine" input: "a" output: "b"
    opset_import { version: 20 } node { op_type: "F" domain: "mine" input: "a" output: "b" } })");
  EXPECT_TRUE(holds(runImport(model).error, "functions call each other more than 32 deep, or without end"));
}

TEST(Model, PersistentBuffersAreKept) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Mul" input: ["x", "table"] output: "z" }
    node { op_type: "Add" input: ["z", "w.0"] output: "y" }
    initializer { name: "table" data_type: 1 dims: 3 float_data: [1, 2, 3] }
    value_info { name: "table"
      metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.kind" value: "BUFFER" }
      metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.persistent" value: "True" } })");
  EXPECT_TRUE(holds(runImport(model).text, "buffer @table : tensor<3xf32>"));
}

TEST(Model, DropoutIsNumberedInGraphOrder) {
  const std::string dropout = R"(
    node { op_type: "Constant" output: "ratio" attribute { name: "value_float" f: 0.1 type: 1 } }
    node { op_type: "Constant" output: "on" attribute { name: "value" type: 4 t { data_type: 9 int32_data: 1 } } }
    node { op_type: "Add" input: ["x", "w.0"] output: "a" }
    node { op_type: "Dropout" input: ["a", "ratio", "on"] output: ["b", "unused"] }
    node { op_type: "Dropout" input: ["b", "ratio", "on"] output: ["y", "mask"] })";
  const std::string text = runImport(smallModel(dropout)).text;
  EXPECT_TRUE(holds(text, "ratio 1.000000e-01 id 0")) << text; // 0.1, not the nearest float
  EXPECT_TRUE(holds(text, "ratio 1.000000e-01 id 1"));
  onnx::ModelProto masked = smallModel(dropout + R"( node { op_type: "Not" input: "mask" output: "z" })");
  masked.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_TRUE(holds(runImport(masked).error, "output 'z' is bool [2, 3], but the loss must be"));
}

TEST(Model, LocationsCarryScopeAndNode) {
  const std::string text =
      runImport(smallModel(R"(node { name: "node_add" op_type: "Add" input: ["x", "w.0"] output: "y"
    metadata_props { key: "pkg.torch.onnx.name_scopes" value: "['', 'h', 'h.0', 'h.0.attn', 'add_3']" } })"))
          .located;
  EXPECT_TRUE(holds(text, "loc(\"h/0/attn/node_add\")")) << text;
  EXPECT_TRUE(holds(text, "loc(\"x\")")); // arguments are named, too
  EXPECT_TRUE(holds(
      runImport(smallModel(R"(node { name: "/h.0/attn/Add" op_type: "Add" input: ["x", "w.0"] output: "y" })")).located,
      "loc(\"h.0/attn/Add\")"));
}

TEST(Model, WhatForwardMakesOfABufferIsStoredThere) {
  const std::string nodes = R"(
    initializer { name: "average" data_type: 1 dims: 3 float_data: [1, 1, 1] }
    node { name: "scaled" op_type: "Mul" input: ["average", "w.0"] output: "new" }
    node { op_type: "Add" input: ["x", "new"] output: "y" })";
  const auto imported = [&](const std::string &state) {
    return runImport(smallModel(nodes, "metadata_props { key: \"deepstatic.state\" value: '" + state + "' }"));
  };
  EXPECT_FALSE(holds(runImport(smallModel(nodes)).text, "train.store")); // a constant
  const std::string text = imported(R"({"average": {"value": "new", "evaluation": "kept"}})").text;
  EXPECT_TRUE(holds(text, "train.variable  buffer @average")) << text;
  EXPECT_TRUE(holds(text, "{train.stop_gradient}")) << text;
  EXPECT_TRUE(holds(text, "into @average {train.kept_in_evaluation} : tensor<3xf32>")) << text;
  EXPECT_TRUE(holds(imported(R"({"average": {"value": "y", "evaluation": "kept"}})").error,
                    "gives 'average' the value 'y', which is no tensor of its type and shape"));
  for (const char *state : {"[]", R"({"average": "new"})", R"({"average": {"value": "new", "evaluation": "no"}})"})
    EXPECT_TRUE(holds(imported(state).error, "'deepstatic.state' is not an object of buffers")) << state;
  EXPECT_TRUE(holds(imported(R"({"w.0": {"value": "new", "evaluation": "kept"}})").error,
                    "a tensor is either state or trained"));
}
