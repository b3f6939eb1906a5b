//===- BadInputTest.cpp - models that no exporter writes ---------------------------------===//
#include "test/unit/import/Support.h"

#include <gtest/gtest.h>
#include <random>

using namespace ds;
using namespace ds::import;

namespace {
const std::string add = R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })";

void expectRefusal(const onnx::ModelProto &model, const std::string &part) {
  const Outcome outcome = runImport(model);
  EXPECT_FALSE(outcome.ok);
  EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
}
void expectNodeRefusal(const std::string &nodes, const std::string &part) { expectRefusal(smallModel(nodes), part); }
} // namespace

TEST(BadInput, NoModelAtAll) {
  for (const char *bytes : {"", "not a model", "\xff\xff\xff\xff", "\x08\x0a"})
    EXPECT_FALSE(runImport(std::string_view(bytes)).ok);
  EXPECT_NE(runImport(std::string_view("\x08\x0a")).error.find("holds no graph"), std::string::npos);
  ImportOptions options;
  options.path = "/nowhere/model.onnx";
  EXPECT_EQ(runImport(options).error, "cannot open '/nowhere/model.onnx': No such file or directory");
}

TEST(BadInput, TextThatIsNoModel) {
  ImportOptions options;
  options.path = "model.textproto";
  EXPECT_EQ(
      runImport("graph { nodes }", options).error,
      "the file is no ONNX model in protobuf's text format: line 1: Message type \"ds.onnx.GraphProto\" has no field "
      "named \"nodes\".");
}

TEST(BadInput, OpsetsOutsideTheKnownRange) {
  onnx::ModelProto model = smallModel(add);
  model.mutable_opset_import(0)->set_version(28);
  expectRefusal(model, "(Add, opset 28): the operator is known in opsets 1 to 27; export with opset_version=20");
  model.mutable_opset_import(0)->set_version(-1);
  expectRefusal(model, "the model imports no opset of the default domain");
  model.clear_opset_import();
  expectRefusal(model, "the model imports no opset of the default domain");
}

TEST(BadInput, OperatorsOfLaterOpsetsThanTheModelSays) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "RMSNormalization" input: ["x", "w.0"] output: "y" })");
  model.mutable_opset_import(0)->set_version(18);
  expectRefusal(model, "node 'y' (RMSNormalization, opset 18): the model says opset 18, but the operator is known in "
                       "opsets 23 to 27; torch.onnx.export writes such a file when it is asked for an opset above 25: "
                       "export with opset_version=20, or any from 18 to 25");
}

TEST(BadInput, KindsOfModelsThatAreNotAvailable) {
  onnx::ModelProto model = smallModel(add);
  (void)model.add_training_info();
  expectRefusal(model, "training_info updates nothing: its update_binding is empty");
  expectNodeRefusal(R"(node { op_type: "SoftmaxGrad" domain: "com.microsoft" input: "x" output: "y" })",
                    "training graph of ONNX Runtime, which is not available yet");
  model = smallModel(add);
  (void)model.mutable_graph()->add_sparse_initializer();
  expectRefusal(model, "sparse initializers");
}

TEST(BadInput, OperatorsThatAreUnknown) {
  expectNodeRefusal(R"(node { name: "n" op_type: "Compress" input: ["x", "x"] output: "y" })",
                    "the size of its result depends on data");
  expectNodeRefusal(R"(node { name: "n" op_type: "Frobnicate" input: "x" output: "y" })",
                    "node 'n' (Frobnicate, opset 20): the operator is not supported for training yet");
  expectNodeRefusal(R"(node { op_type: "Add" domain: "mine" input: ["x", "w.0"] output: "y" })",
                    "node 'y' (Add, opset 20): operators of domain 'mine' are unknown");
  onnx::ModelProto old = smallModel(R"(node { op_type: "Gelu" input: "x" output: "y" })");
  old.mutable_opset_import(0)->set_version(17);
  expectRefusal(old, "the operator is known in opsets 20 to 27; export with opset_version=20");
}

TEST(BadInput, InputsThatAnOperatorDoesNotHave) {
  expectNodeRefusal(R"(node { op_type: "Relu" input: ["x", "w.0"] output: "y" })",
                    "(Relu, opset 20): input 1 ('w.0') is one that Relu does not have");
}

TEST(BadInput, ControlFlow) {
  const std::string body =
      R"(attribute { name: "body" type: 5 g { input { name: "i" } input { name: "c" } input { name: "h" }
         node { op_type: "Identity" input: "c" output: "d" } node { op_type: "Neg" input: "h" output: "k" }
         output { name: "d" } output { name: "k" } } })";
  const std::string scalars =
      R"(node { op_type: "ReduceMax" input: "x" output: "m" attribute { name: "keepdims" i: 0 type: 2 } }
         node { op_type: "Cast" input: "m" output: "n" attribute { name: "to" i: 7 type: 2 } }
         node { op_type: "Cast" input: "m" output: "b" attribute { name: "to" i: 9 type: 2 } })";
  expectNodeRefusal(scalars + R"(node { name: "l" op_type: "Loop" input: ["n", "", "x"] output: "y" )" + body + "}",
                    "node 'l' (Loop, opset 20): control flow: the number of iterations ('n') depends on what the model "
                    "is fed or trains, and a plan is static; give the loop a fixed number of iterations");
  expectNodeRefusal(scalars + R"(node { name: "l" op_type: "Loop" input: ["", "b", "x"] output: "y" )" + body + "}",
                    "control flow: the condition ('b') depends on");
  expectNodeRefusal(scalars + R"(node { name: "n" op_type: "If" input: "b" output: "y" })",
                    "node 'n' (If, opset 20): control flow: the condition ('b') depends on what the model is fed or "
                    "trains, and a plan is static; compute both branches and choose by torch.where");
  const std::string endless = R"(node { name: "l" op_type: "Loop" input: ["", "", "x"] output: "y" )" + body + "}";
  expectNodeRefusal(endless, "unrolled, the model's control flow has more than 100000 nodes");
  expectNodeRefusal(R"(node { name: "l" op_type: "Loop" input: ["", "", "x", "x"] output: "y" )" + body + "}",
                    "the body has 2 outputs and needs at least 3");
  expectNodeRefusal(R"(node { name: "l" op_type: "Loop" input: ["", "", "x"] output: "y" })",
                    "the body 'body' is missing");
  expectNodeRefusal(R"(node { name: "s" op_type: "Scan" input: ["x"] output: "y" )" + body +
                        R"(attribute { name: "num_scan_inputs" i: 1 type: 2 } })",
                    "the body has 3 inputs and is given 1");
}

TEST(BadInput, BodiesThatDoNotFollowTheRules) {
  auto branch = [](const std::string &nodes) {
    return R"(node { op_type: "Constant" output: "yes" attribute { name: "value_int" i: 1 type: 2 } }
              node { name: "n" op_type: "If" input: "yes" output: "y" attribute { name: "then_branch" type: 5 g { )" +
           nodes + R"( output { name: "z" } } } })";
  };
  expectNodeRefusal(branch(R"(node { op_type: "Neg" input: "nothing" output: "z" })"),
                    "reads 'nothing', which no input");
  expectNodeRefusal(branch(R"(node { op_type: "Neg" input: "z" output: "z" })"), "is not available");
  expectNodeRefusal(
      branch(R"(node { op_type: "Neg" input: "x" output: "z" } node { op_type: "Abs" input: "x" output: "z" })"),
      "is already made elsewhere");
  expectNodeRefusal(branch("node { op_type: \"Neg\" name: \"\\377\" input: \"x\" output: \"z\" }"), "is not UTF-8");
  expectNodeRefusal(branch(R"(node { op_type: "Frob" input: "x" output: "z" })"),
                    "node 'n' (If, opset 20): node 'body@0/' (Frob, opset 20): the operator is not supported");
}

TEST(BadInput, ValuesThatDoNotFollowTheRules) {
  expectNodeRefusal(R"(node { op_type: "Add" input: ["x", "nothing"] output: "y" })",
                    "reads 'nothing', which no input");
  expectNodeRefusal(
      R"(node { op_type: "Add" input: ["x", "z"] output: "y" } node { op_type: "Neg" input: "y" output: "z" })",
      "reads 'z', which a later node makes");
  expectNodeRefusal(add + R"(node { op_type: "Neg" input: "x" output: "y" })", "value 'y' is already made elsewhere");
  expectNodeRefusal(add + R"(node { op_type: "Neg" input: "x" output: "w.0" })", "value 'w.0' is already made");
  expectNodeRefusal(add + R"(initializer { name: "w.0" data_type: 1 })", "initializer 'w.0' is there twice");
  expectNodeRefusal(add + R"(input { name: "x" })", "input 'x' is there twice");
  onnx::ModelProto model = smallModel(add);
  model.mutable_graph()->mutable_output(0)->set_name("gain");
  expectRefusal(model, "output 'gain' is made by no node");
  model.mutable_graph()->clear_output();
  expectRefusal(model, "the model has no output");
  expectNodeRefusal("node { op_type: \"Add\" name: \"\\377\" input: [\"x\", \"w.0\"] output: \"y\" }", "is not UTF-8");
}

TEST(BadInput, TypesThatAreNotAvailable) {
  onnx::ModelProto model = smallModel(add);
  model.mutable_graph()->mutable_initializer(0)->set_data_type(16);
  expectRefusal(model, "initializer 'w.0' is bfloat16; float32 and float64");
  model = smallModel(add);
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(2);
  expectRefusal(model, "input 'x' is uint8; float32, float64, float16, bfloat16, int32");
  expectNodeRefusal(R"(node { op_type: "Cast" input: "x" output: "y" attribute { name: "to" i: 2 type: 2 } })",
                    "casts to uint8, which is not available yet");
  expectNodeRefusal(
      R"(node { op_type: "Cast" input: "x" output: "y" attribute { name: "to" i: 10 type: 2 } })",
      "output 'loss' is float16, in which a mean loses most of its addends; cast what it is computed from");
}

TEST(BadInput, DataThatDoesNotFitItsShape) {
  onnx::ModelProto model = smallModel(add);
  onnx::TensorProto &tensor = *model.mutable_graph()->mutable_initializer(0);
  tensor.add_float_data(4);
  expectRefusal(model, "initializer 'w.0' has 16 bytes of data, but float32 [3] needs 12");
  tensor.set_dims(0, -3);
  expectRefusal(model, "impossible shape [-3]");
  tensor.set_dims(0, int64_t(1) << 62);
  expectRefusal(model, "passes the limit of 2^48 bytes");
  tensor.mutable_dims()->Resize(17, 1);
  expectRefusal(model, "has 17 dimensions; at most 16");
  model = smallModel(add);
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(12, 'w'));
  expectRefusal(model, "has its data in more than one field");
  model = smallModel(add + R"(initializer { name: "w.1" data_type: 11 float_data: 1 }
    node { op_type: "Cast" input: "w.1" output: "f" attribute { name: "to" i: 1 type: 2 } }
    node { op_type: "Add" input: ["y", "f"] output: "z" })");
  model.mutable_graph()->mutable_node(model.graph().node_size() - 1)->set_input(0, "z");
  expectRefusal(model, "in a field of another type than float64");
}

TEST(BadInput, ConstantsThatGrowWithoutBound) {
  const std::string huge =
      R"(node { op_type: "Constant" output: "n" attribute { name: "value_ints" ints: [1000000, 1000000] type: 7 } }
    node { op_type: "ConstantOfShape" input: "n" output: "c" })";
  // Uniform, so it takes no room; computing with what differs along it would.
  expectNodeRefusal(huge + R"(node { op_type: "Add" input: ["x", "c"] output: "y" })", "do not broadcast");
  expectNodeRefusal(R"(node { op_type: "Constant" output: "0" attribute { name: "value_int" i: 0 type: 2 } }
    node { op_type: "Constant" output: "1" attribute { name: "value_int" i: 1 type: 2 } }
    node { op_type: "Constant" output: "n" attribute { name: "value_int" i: 1000000000000 type: 2 } }
    node { op_type: "Range" input: ["0", "n", "1"] output: "y" })",
                    "more than may be folded");
}

TEST(BadInput, NamesDoNotBreakTheLine) {
  const Outcome outcome =
      runImport(smallModel(R"(node { name: "a\nb\033[31m" op_type: "Foo" input: "x" output: "y" })"));
  EXPECT_NE(outcome.error.find("node 'a?b?[31m' (Foo"), std::string::npos) << outcome.error;
}

TEST(BadInput, MetadataThatIsNotOurs) {
  for (const char *value : {"{", "3", "[1]", "[[["}) {
    onnx::ModelProto model = smallModel(add);
    onnx::StringStringEntryProto &entry = *model.add_metadata_props();
    entry.set_key("deepstatic.trainable");
    entry.set_value(value);
    expectRefusal(model, "the model's metadata 'deepstatic.trainable' is not");
  }
}

/// Any byte of a real file changed: imported or refused with one line, never a crash.
TEST(BadInput, ChangedBytes) {
  std::string bytes = readFile(sourcePath("test/e2e/hazards/label-smoothing-lost/model.onnx"));
  ASSERT_FALSE(bytes.empty());
  ImportOptions options;
  options.dims = {{"batch", 2}};
  options.maxConstantElements = 1 << 16;
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string changed = bytes;
    for (int k = 0; k <= i % 3; ++k)
      changed[random() % changed.size()] = char(random());
    (void)runImport(std::string_view(changed), options);
  }
}
