// The table of kernels: what it says of calls, and the page that is made of it.
#include "kernels/KernelRows.h"
#include "test/unit/kernels/Harness.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace ds::kernels::test {

namespace {

/// The columns that KernelRow.h does not keep: as they stand in Kernels.inc.
struct Text {
  std::string_view attributes, factors, cpuWorkspace, cudaWorkspace, flops, text;
};
constexpr Text texts[] = {
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  {attributes, #factors, #cpuWorkspace, #cudaWorkspace, #flops, text},
#include "kernels/Kernels.inc"
#undef DS_KERNEL
};

const char *const pageHead =
    "<!-- Written by test/unit/kernels/kernel_table_test.cpp (DS_UPDATE_DOCS=1 KernelsTest); do not edit. -->\n"
    "# Kernels\n"
    "What a plan's kernel commands may call. Operands stand in the order of the tables; behind them a call may have a "
    "workspace, bytes that\n"
    "the plan reserves. The rows are those of `kernels/Kernels.inc`, from which the compiler, the checker and the "
    "runtime take them.\n"
    "\n"
    "Element types: T is the call's own type, any float; with bfloat16 and float16 arithmetic inside is "
    "float32, and what is written is\n"
    "rounded once, to nearest even. F is T without these two, N any number, X any type; A any type, moved as bytes; E "
    "any type, each operand its\n"
    "own; I int32 or int64. S (statistics, losses, scales) and G (sums over many elements) are T, but S is float32 "
    "where T has 16 bits, and G\n"
    "may be. A name in a shape is the same size wherever it stands in a call; \"...\" is any number of sizes. \"over "
    "x\": the result may lie in\n"
    "the memory of x, if shape and bytes an element are the same.\n"
    "\n"
    "Factors say what splitting a call does (`kernels/Factors.h`): a function where one is named. Else a name in the "
    "shapes passes: parts of\n"
    "operands that are cut along it give the parts of the results. \"cols!\" and what has no name stay whole.\n";

std::string accessOf(const OperandRow &operand) {
  return operand.access == OperandAccess::Read    ? "read"
         : operand.access == OperandAccess::Write ? "written"
                                                  : "read, written";
}

std::string presenceOf(const OperandRow &operand) {
  const std::string attribute =
      "`" + std::string(operand.attribute) + "`" + (operand.value.empty() ? "" : " is " + std::string(operand.value));
  switch (operand.presence) {
  case Presence::Always:
    return operand.repeated ? "any number" : "";
  case Presence::By:
    return "one for each of `" + std::string(operand.attribute) + "`";
  case Presence::If:
    return "if " + attribute;
  case Presence::Unless:
    return "without " + attribute;
  }
  return "";
}

void addRow(std::ostream &page, const KernelRow &row, const Text &text) {
  page << "\n## " << row.name << "\n" << text.text << "\n\n| operand | types | shape | | |\n|---|---|---|---|---|\n";
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const OperandRow &operand = row.operands[i];
    std::string notes = presenceOf(operand) + (operand.whole ? "a whole variable" : "");
    for (size_t k = 0; k < row.operands.size(); ++k)
      if (operand.over >> k & 1)
        notes += (notes.empty() ? "over " : ", over ") + std::string(row.operands[k].name);
    std::string types(operand.typeNames);
    for (size_t bar = types.find('|'); bar != std::string::npos; bar = types.find('|', bar + 4))
      types.replace(bar, 1, " or ");
    page << "| " << operand.name << " | " << types << " | " << operand.shape << " | " << accessOf(operand) << " | "
         << notes << " |\n";
  }
  const std::string_view none = "noWorkspace";
  if (!text.attributes.empty())
    page << "\nAttributes: " << text.attributes << ".\n";
  if (text.factors != "namedFactors")
    page << "\nFactors: " << text.factors << ".\n";
  if (text.cpuWorkspace != none || text.cudaWorkspace != none)
    page << "\nWorkspace: " << (text.cpuWorkspace == none ? "none" : text.cpuWorkspace) << " on CPUs, "
         << (text.cudaWorkspace == none ? "none" : text.cudaWorkspace) << " on GPUs.\n";
  if (text.flops != "noFlops")
    page << "\nFLOPs: " << text.flops << ".\n";
}

TEST(KernelTable, ChecksWhatARowCannotSay) {
  Invocation call{"cross_entropy",
                  {{DType::F32, {4, 10}}, {DType::I64, {4}}, {DType::F32, {}}, {DType::F32, {4}}},
                  {{"ignore_index", int64_t(-100)}, {"reduction", std::string("mean")}, {"classes", int64_t(10)}}};
  EXPECT_NO_THROW(requireCall(call, Device::Cpu));
  call.attributes["classes"] = int64_t(11);
  EXPECT_THROW(requireCall(call, Device::Cpu), Error);
  Invocation product{"matmul",
                     {{DType::F32, {2, 3}}, {DType::F32, {4, 5}}, {DType::F32, {2, 5}}},
                     {{"trans_a", int64_t(0)}, {"trans_b", int64_t(0)}, {"bias", int64_t(0)}, {"pieces", int64_t(1)}}};
  EXPECT_THROW(requireCall(product, Device::Cuda), Error); // no sizes that are contracted
}

TEST(KernelTable, PageIsOfTheTable) {
  std::ostringstream made;
  made << pageHead;
  for (size_t i = 0; i < std::size(texts); ++i)
    addRow(made, kernelRows[i], texts[i]);
  const std::string page = DS_SOURCE_DIR "/docs/reference/kernels.md";
  if (std::getenv("DS_UPDATE_DOCS"))
    std::ofstream(page) << made.str();
  std::ostringstream there;
  there << std::ifstream(page).rdbuf();
  EXPECT_TRUE(there.str() == made.str()) << page << " is stale; write it anew: DS_UPDATE_DOCS=1 KernelsTest";
}

TEST(KernelTable, HasAKernelOfEveryRowInBothRegistries) {
  for (const KernelRow &row : kernelRows) {
    EXPECT_NE(cpuKernels().find(row.name), nullptr) << row.name;
    EXPECT_NE(cpuReferenceKernels().find(row.name), nullptr) << row.name;
  }
  EXPECT_EQ(cpuKernels().all().size(), std::size(kernelRows));
}

TEST(KernelTable, FindsOperandsBehindThoseThatAreLeftOut) {
  const TensorType x{DType::F32, {2, 3}}, scalar{DType::F64, {}}, step{DType::I64, {}};
  const Attributes plain = {{"momentum", 0.0}, {"weight_decay", 0.0}, {"nesterov", int64_t(0)}};
  Attributes momentum = plain;
  momentum["momentum"] = 0.9;
  const CallLayout without(Invocation{"sgd", {x, x, scalar, step, scalar}, plain});
  const CallLayout with(Invocation{"sgd", {x, x, x, scalar, step, scalar}, momentum});
  EXPECT_EQ(without.find("lr"), 2u);
  EXPECT_EQ(without.find("momentum_buffer"), std::nullopt);
  EXPECT_EQ(with.find("lr"), 3u);
  EXPECT_TRUE(with.row().isOptimizer());
  EXPECT_FALSE(with.hasWorkspace());
}

TEST(KernelTable, SaysWhichUpdatesAreOfWholeParameters) {
  for (const KernelRow &row : allKernels())
    EXPECT_EQ(row.updatesWhole(), row.name == "lamb") << row.name;
}

TEST(KernelTable, SaysWhatAResultMayLieOver) {
  const TensorType x{DType::F32, {4, 3}}, c{DType::F32, {3}}, r{DType::F32, {4}};
  const Invocation norm{"layer_norm_grad", {x, x, c, r, r, x, c, c, {DType::U8, {64}}}, {}};
  EXPECT_TRUE(CallLayout(norm).hasWorkspace());
  EXPECT_TRUE(mayOverwrite(norm, 0, 5));
  EXPECT_TRUE(mayOverwrite(norm, 1, 5));
  EXPECT_FALSE(mayOverwrite(norm, 2, 5));
  EXPECT_FALSE(mayOverwrite(norm, 2, 6));
  EXPECT_FALSE(mayOverwrite(norm, 0, 8));
  const TensorType square{DType::F32, {4, 4}};
  EXPECT_FALSE(mayOverwrite({"transpose", {square, square}, {{"perm", Shape{1, 0}}}}, 0, 1));
}

TEST(KernelTable, LetsElementsOfTheSameBytesLieOverEachOther) {
  const Attributes program = {
      {"program", std::vector<int64_t>{}}, {"constants", std::vector<double>{}}, {"results", std::vector<int64_t>{0}}};
  const TensorType x{DType::F32, {4, 3}}, row{DType::F32, {3}}, i{DType::I32, {4, 3}}, wide{DType::F64, {4, 3}};
  const Invocation call{"elementwise", {x, row, wide, i}, program};
  EXPECT_TRUE(mayOverwrite(call, 0, 3));
  EXPECT_FALSE(mayOverwrite(call, 1, 3)); // broadcast
  EXPECT_FALSE(mayOverwrite(call, 2, 3));
  EXPECT_FALSE(mayOverwrite(call, 0, 1)); // read
  EXPECT_FALSE(mayOverwrite({"elementwise", {x, x}, {}}, 0, 1)) << "no call of the table";
}

TEST(KernelTable, RefusesAttributesOfNoRow) {
  const TensorType x{DType::F32, {4, 3}};
  expectRefused({"softmax", {x, x}, {{"axis", int64_t(1)}, {"scale", 1.0}}}, "has no attribute 'scale'");
  expectRefused({"softmax", {x, x}, {{"axis", 1.0}}}, "attribute 'axis' must be an integer");
}

TEST(KernelTable, CountsFlops) {
  const TensorType a{DType::F32, {5, 4, 8}}, b{DType::F32, {8, 6}}, c{DType::F32, {5, 4, 6}}, bias{DType::F32, {6}};
  const KernelRow &matmul = *findKernel("matmul");
  const std::vector<TensorType> reads = {a, b, bias}, writes = {c};
  EXPECT_EQ(flopsOf("matmul", CallTypes(matmul, reads, writes)), 2 * 5 * 4 * 6 * 8);
  const TensorType q{DType::F32, {2, 4, 10, 8}}, k{DType::F32, {2, 2, 12, 8}}, v{DType::F32, {2, 2, 12, 6}};
  const TensorType out{DType::F32, {2, 4, 10, 6}}, lse{DType::F32, {2, 4, 10}};
  const std::vector<TensorType> inputs = {q, k, v}, results = {out, lse};
  EXPECT_EQ(flopsOf("attention", CallTypes(*findKernel("attention"), inputs, results)),
            2 * (2 * 4 * 10 * 12) * (8 + 6));
  EXPECT_EQ(flopsOf("softmax", CallTypes(*findKernel("softmax"), inputs, results)), 0);
}

TEST(KernelTable, CountsPackedAttentionAsAttention) {
  const TensorType qkv{DType::F32, {2, 10, 8, 16}}, out{DType::F32, {2, 10, 4, 16}}, lse{DType::F32, {2, 4, 10}};
  const double product = 2 * (2 * 4 * 10 * 10) * 16;
  const std::vector<TensorType> inputs = {qkv}, results = {out, lse};
  EXPECT_EQ(flopsOf("packed_attention", CallTypes(*findKernel("packed_attention"), inputs, results)), 2 * product);
  const std::vector<TensorType> gradientInputs = {out, qkv, out, lse};
  const CallTypes gradient(*findKernel("packed_attention_grad"), gradientInputs, inputs);
  EXPECT_EQ(flopsOf("packed_attention_grad", gradient), 5 * product);
  EXPECT_EQ(repeatedFlopsOf("packed_attention_grad", gradient), product);
  for (const char *kernel : {"attention", "attention_grad", "packed_attention", "packed_attention_grad"})
    EXPECT_TRUE(isAttention(kernel));
  EXPECT_FALSE(isAttention("matmul"));
}

TEST(KernelTable, CountsTheScoresThatACausalMaskLeaves) {
  const auto flops = [](int64_t queries, int64_t keys, bool isCausal) {
    const TensorType q{DType::F32, {1, 1, queries, 1}}, k{DType::F32, {1, 1, keys, 1}},
        lse{DType::F32, {1, 1, queries}};
    const std::vector<TensorType> inputs = {q, k, k}, results = {q, lse};
    return flopsOf("attention", CallTypes(*findKernel("attention"), inputs, results, isCausal)) / 4;
  };
  EXPECT_EQ(flops(5, 5, false), 25);
  EXPECT_EQ(flops(5, 5, true), 1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(flops(5, 3, true), 1 + 2 + 3 + 3 + 3); // queries below see all keys
  EXPECT_EQ(flops(3, 5, true), 1 + 2 + 3);         // nobody sees the last keys
}

TEST(KernelTable, CountsBytesThatCallsDoNotTouch) {
  const TensorType table{DType::F32, {50, 8}}, few{DType::I64, {3}}, rows{DType::F32, {3, 8}};
  const std::vector<TensorType> lookup = {table, few}, rowsAlone = {rows};
  EXPECT_EQ(untouchedBytes("gather", CallTypes(*findKernel("gather"), lookup, rowsAlone)), 47 * 8 * 4);
  const TensorType many{DType::I64, {60}}, more{DType::F32, {60, 8}};
  const std::vector<TensorType> repeated = {table, many}, moreAlone = {more}, tableAlone = {table};
  EXPECT_EQ(untouchedBytes("gather", CallTypes(*findKernel("gather"), repeated, moreAlone)), 0);
  EXPECT_EQ(untouchedBytes("slice", CallTypes(*findKernel("slice"), tableAlone, rowsAlone)), 47 * 8 * 4);
  EXPECT_EQ(untouchedBytes("transpose", CallTypes(*findKernel("transpose"), tableAlone, tableAlone)), 0);
}

} // namespace

} // namespace ds::kernels::test
