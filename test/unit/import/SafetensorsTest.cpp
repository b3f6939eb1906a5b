//===- SafetensorsTest.cpp - weights that the model file leaves out ---------------===//
#include "test/unit/import/Support.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::import;

namespace {
std::string safetensors(const std::string &header, size_t dataBytes) {
  uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(dataBytes, '\0');
}

/// A model that reads w.0 float32 [3] without defining it; as a typed graph input if `declared`.
onnx::ModelProto withoutWeights(bool declared, const std::string &metadata = "") {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })", metadata);
  model.mutable_graph()->clear_initializer();
  if (declared)
    *model.mutable_graph()->add_input() = parseModel(R"(graph { input { name: "w.0"
      type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } }
      metadata_props { key: "pkg.torch.export.graph_signature.InputSpec.kind" value: "PARAMETER" } } })")
                                              .graph()
                                              .input(0);
  return model;
}

Outcome importWith(const std::string &bytes, bool declared = true) {
  TemporaryFolder folder;
  ImportOptions options;
  options.path = (folder.path() / "model.onnx").string();
  options.weights = folder.write("w.safetensors", bytes);
  return runImport(withoutWeights(declared), options);
}
const std::string good =
    R"({"w.0": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}, "__metadata__": {"a": "b"}})";
} // namespace

TEST(Safetensors, ResolveParametersLeftOut) {
  for (bool declared : {true, false}) {
    const Outcome outcome = importWith(safetensors(good, 12), declared);
    ASSERT_TRUE(outcome.ok) << outcome.error;
    const std::string source = "#train.file<\"w.safetensors\", " + std::to_string(8 + good.size()) + ", 12>";
    EXPECT_NE(outcome.text.find(source), std::string::npos) << outcome.text;
  }
}

TEST(Safetensors, MustFitTheModel) {
  EXPECT_NE(importWith(safetensors(R"({"w.0": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})", 16))
                .error.find("parameter 'w.0' is F32 [3] in the model, but F32 [4] in 'w.safetensors'"),
            std::string::npos);
  EXPECT_NE(importWith(safetensors(R"({"other": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})", 12))
                .error.find("parameter 'w.0' is neither in the model nor in the file that --weights names"),
            std::string::npos);
}

TEST(Safetensors, MalformedFilesAreRefused) {
  const std::pair<std::string, const char *> cases[] = {
      {"1234", "it has only 4 bytes"},
      {std::string(8, '\xff'), "its header would have 18446744073709551615 bytes"},
      {safetensors("{", 0), "is not JSON"},
      {safetensors("[]", 0), "is not a JSON object"},
      {safetensors(std::string(100000, '['), 0), "nests deeper than 32 levels"},
      {safetensors(R"({"w.0": {"dtype": "F32"}})", 12), "lacks a dtype, a shape or data_offsets"},
      {safetensors(good, 11), "lie outside the file's 11 bytes"},
      {safetensors(good, 13), "the tensors end at byte 12 of 13 bytes"},
      {safetensors(R"({"w.0": {"dtype": "F32", "shape": [3], "data_offsets": [4, 16]}})", 16),
       "leave a hole at byte 0"},
      {safetensors(R"({"w.0": {"dtype": "F32", "shape": [3], "data_offsets": [12, 0]}})", 12), "lie outside"},
      {safetensors(R"({"w.0": {"dtype": "F32", "shape": [3], "data_offsets": [0, 16]}})", 16), "does not need"},
  };
  for (const auto &[bytes, message] : cases)
    EXPECT_NE(importWith(bytes).error.find(message), std::string::npos) << importWith(bytes).error;
}

TEST(Safetensors, WithoutAFileTheRuleOrNothingStandsForAParameter) {
  EXPECT_NE(runImport(withoutWeights(true)).text.find("#train.missing<"), std::string::npos);
  EXPECT_NE(runImport(withoutWeights(false)).error.find("give --weights F.safetensors"), std::string::npos);
  auto rule = [](const std::string &text) {
    return "metadata_props { key: \"deepstatic.init\" value: '{\"w.0\": " + text + "}' }";
  };
  EXPECT_NE(runImport(withoutWeights(true, rule(R"({"rule": "ones"})"))).text.find("#train.fill<1.0"),
            std::string::npos);
  EXPECT_NE(runImport(withoutWeights(true, rule(R"({"rule": "normal", "mean": 0, "std": 0.5})")))
                .text.find("#train.random<\"normal\", 0.000000e+00 : f64, 5.000000e-01 : f64>"),
            std::string::npos);
  // Uniform with standard deviation 1 reaches sqrt(3) to both sides.
  EXPECT_NE(runImport(withoutWeights(true, rule(R"({"rule": "uniform", "mean": 0, "std": 1})")))
                .text.find("#train.random<\"uniform\", 0.000000e+00 : f64, 1.73205"),
            std::string::npos);
  EXPECT_NE(runImport(withoutWeights(true, rule(R"({"rule": "cauchy"})"))).error.find("deepstatic.init"),
            std::string::npos);
}
