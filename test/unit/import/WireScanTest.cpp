//===- WireScanTest.cpp - a model's structure without its weights ---------------===//
#include "compiler/import/files/WireScan.h"
#include "compiler/import/files/Failure.h"
#include "test/unit/import/Support.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::import;

static ScannedModel scan(const std::string &bytes, uint64_t maxBytes = 1 << 20) {
  return scanModel(bytes, maxBytes, "the file");
}

TEST(WireScan, FindsRawDataInPlace) {
  onnx::ModelProto model = smallModel("");
  onnx::TensorProto &tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("raw");
  tensor.set_raw_data("sixteen bytes...");
  const std::string bytes = model.SerializeAsString();
  const ScannedModel scanned = scan(bytes);
  ASSERT_EQ(scanned.data.size(), 2u);
  EXPECT_EQ(bytes.substr(scanned.data[1]->offset, scanned.data[1]->length), "sixteen bytes...");
  EXPECT_EQ(scanned.data[1]->field, 9);
  EXPECT_EQ(scanned.data[0]->field, 4); // packed float_data is a run of bytes, too
  EXPECT_EQ(scanned.data[0]->length, 12u);
  EXPECT_FALSE(scanned.proto.graph().initializer(1).has_raw_data());
}

TEST(WireScan, KeepsEverythingElse) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })");
  ScannedModel scanned = scan(model.SerializeAsString());
  model.mutable_graph()->mutable_initializer(0)->clear_float_data();
  EXPECT_EQ(scanned.proto.SerializeAsString(), model.SerializeAsString());
}

TEST(WireScan, DoesNotTakeDataOfTwoFieldsApart) {
  onnx::ModelProto model = smallModel("");
  model.mutable_graph()->mutable_initializer(0)->set_raw_data("twelve bytes");
  EXPECT_FALSE(scan(model.SerializeAsString()).data[0]);
}

TEST(WireScan, WeightsDoNotCountAsStructure) {
  onnx::ModelProto model = smallModel("");
  model.mutable_graph()->mutable_initializer(0)->clear_float_data();
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(100000, 'w'));
  EXPECT_EQ(scan(model.SerializeAsString(), 1000).data[0]->length, 100000u);
  model.mutable_graph()->set_name(std::string(2000, 'n'));
  EXPECT_THROW((void)scan(model.SerializeAsString(), 1000), Failure);
}

TEST(WireScan, MergesAGraphInParts) {
  const onnx::ModelProto model = smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })");
  onnx::ModelProto nodes = model, rest = model;
  nodes.mutable_graph()->clear_initializer();
  rest.clear_opset_import();
  const onnx::GraphProto initializers = rest.graph();
  rest.mutable_graph()->Clear();
  *rest.mutable_graph()->mutable_initializer() = initializers.initializer();
  const ScannedModel scanned = scan(nodes.SerializeAsString() + rest.SerializeAsString());
  EXPECT_EQ(scanned.proto.graph().node_size(), 2);
  EXPECT_EQ(scanned.proto.graph().initializer_size(), 1);
}

TEST(WireScan, RefusesEveryTruncation) {
  const std::string bytes =
      smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })").SerializeAsString();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(runImport(std::string_view(bytes).substr(0, length)).ok) << length;
}

TEST(WireScan, SaysWhereItEnds) {
  try {
    (void)scan("\x3a\x7fshort");
    FAIL();
  } catch (const Failure &failure) {
    EXPECT_STREQ(failure.what(), "the file is truncated or is no ONNX model: it cannot be read on from byte 2");
  }
}
