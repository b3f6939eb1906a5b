// cuDNN's stand-in: what it computes, beside the references; and misuses, each of which it refuses.
#include "kernels/attention/attention_graph.h"
#include "kernels/cuda/CudaKernels.h"
#include "kernels/cuda/Fallback.h"
#include "test/shim/Machine.h"
#include "test/shim/ShimAccelerator.h"
#include "test/shim/cudnn_frontend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace ds::kernels::test {

namespace {

using namespace cudnn_frontend;
using graph::Graph, graph::Numbers, graph::Tensor;

/// The reference's numbers of `kernel`, by the operation `name` of cuDNN.
std::vector<Buffer> expectByCudnn(const char *name, const std::string &kernel, const std::vector<Buffer> &operands,
                                  const Attributes &attributes, const std::vector<size_t> &outputs,
                                  Tolerance tolerance) {
  const auto runs = [&] {
    const auto found = shim::cudnnRuns().find(name);
    return found == shim::cudnnRuns().end() ? 0 : found->second;
  };
  const int64_t before = runs();
  std::vector<Buffer> after = expectMatchesReference(kernel, operands, attributes, outputs, tolerance);
  EXPECT_GE(runs(), before + 3) << "our own kernel ran in place of cuDNN's " << name;
  return after;
}

TEST(FakeCudnn, ComputesAttention) {
  const WithCudnn here(true);
  constexpr DType half = DType::BF16;
  for (bool bshd : {false, true})
    for (bool masked : {false, true}) {
      SCOPED_TRACE(std::string(bshd ? "bshd" : "bhsd") + (masked ? ", masked" : ", causal"));
      Random random{7};
      const auto shape = [&](int64_t heads, int64_t rows) {
        return bshd ? Shape{2, rows, heads, 24} : Shape{2, heads, rows, 24};
      };
      const Attributes attributes = {
          {"scale", 0.3}, {"causal", int64_t(!masked)}, {"mask", int64_t(masked)}, {"bshd", int64_t(bshd)}};
      std::vector<Buffer> operands = {random.buffer(half, shape(4, 9)), random.buffer(half, shape(2, 13)),
                                      random.buffer(half, shape(2, 13))};
      if (masked)
        operands.push_back(random.buffer(half, {2, 1, 9, 13}));
      const size_t out = operands.size();
      operands.emplace_back(type(half, shape(4, 9)));
      operands.emplace_back(type(DType::F32, {2, 4, 9}));
      std::vector<Buffer> all =
          expectByCudnn("sdpa", "attention", operands, attributes, {out, out + 1}, {0x1p-7, 1e-5});
      all.erase(all.begin() + long(out) + 2, all.end()); // the workspace
      all.insert(all.begin(), random.buffer(half, shape(4, 9)));
      for (size_t input = 1; input < 4; ++input)
        all.emplace_back(all[input].type);
      expectByCudnn("sdpa_backward", "attention_grad", all, attributes, {out + 3, out + 4, out + 5}, {0x1p-6, 2e-3});
    }
}

TEST(FakeCudnn, ComputesConvolutions) {
  const WithCudnn here(true);
  for (const auto &[dtype, tolerance] :
       {std::pair{DType::F32, Tolerance{1e-6, 1e-5}}, {DType::BF16, {0x1p-7, 1e-3}}, {DType::F16, {0x1p-10, 1e-3}}}) {
    SCOPED_TRACE(std::string(name(dtype)));
    Random random{7};
    const Shape x = {2, 6, 9, 8}, w = {4, 3, 3, 2}, y = {2, 4, 3, 8}; // across, padding stands before x alone
    Attributes attributes = {
        {"strides", Shape{2, 3}}, {"dilations", Shape{2, 1}}, {"low", Shape{1, 0}}, {"groups", int64_t(2)}};
    const Buffer dy = random.buffer(dtype, y), xs = random.buffer(dtype, x), ws = random.buffer(dtype, w);
    expectByCudnn("conv_dgrad", "conv_input_grad", {dy, ws, Buffer(type(dtype, x))}, attributes, {2}, tolerance);
    if (dtype == DType::F32) // of 16 bits it is float32, which cuDNN has for channels innermost alone
      expectByCudnn("conv_wgrad", "conv_weight_grad", {dy, xs, Buffer(type(dtype, w))}, attributes, {2}, tolerance);
    attributes["bias"] = int64_t(0);
    expectByCudnn("conv_fprop", "conv", {xs, ws, Buffer(type(dtype, y))}, attributes, {2}, tolerance);
  }
}

/// Heads are independent of each other: their gradients have the same bits, however many run at once.
TEST(FakeCudnn, ChunksOfHeadsHaveTheSameBits) {
  const WithCudnn here(true);
  constexpr DType half = DType::BF16;
  for (bool bshd : {false, true})
    for (bool masked : {false, true}) {
      Random random{9};
      const auto shape = [&](int64_t heads, int64_t rows) {
        return bshd ? Shape{2, rows, heads, 24} : Shape{2, heads, rows, 24};
      };
      std::vector<Buffer> operands = {random.buffer(half, shape(4, 8)), random.buffer(half, shape(4, 8)),
                                      random.buffer(half, shape(2, 12)), random.buffer(half, shape(2, 12))};
      if (masked)
        operands.push_back(random.buffer(half, {2, 4, 8, 12}));
      operands.push_back(random.buffer(half, shape(4, 8)));
      operands.push_back(random.buffer(DType::F32, {2, 4, 8}));
      const size_t results = operands.size();
      for (size_t input = 1; input < 4; ++input)
        operands.emplace_back(operands[input].type);
      const Attributes attributes = {
          {"scale", 0.3}, {"causal", int64_t(!masked)}, {"mask", int64_t(masked)}, {"bshd", int64_t(bshd)}};
      const Invocation invocation = invocationOf("attention_grad", operands, attributes);
      const AttentionCall call{Call(invocation)};
      const auto ran = [&](HeadChunk chunk) {
        std::vector<Buffer> after = operands;
        const auto graph = cuda::makeAttentionGradGraph(call, chunk, 1 << 20);
        EXPECT_NE(graph, nullptr);
        std::vector<void *> addresses;
        for (Buffer &one : after) {
          addresses.push_back(shim::allocate(one.bytes(), one.bytes()));
          std::memcpy(addresses.back(), one.data(), one.bytes());
        }
        const Status status = graph->enqueue(addresses, shim::allocate(1 << 20, 1 << 20), nullptr);
        EXPECT_TRUE(status.ok()) << status.message();
        for (size_t i = 0; i < after.size(); ++i)
          std::memcpy(after[i].data(), addresses[i], after[i].bytes());
        shim::releaseAll();
        return after;
      };
      const std::vector<Buffer> whole = ran({2, 2});
      for (const HeadChunk chunk : {HeadChunk{1, 2}, HeadChunk{1, 1}}) {
        const std::vector<Buffer> parts = ran(chunk);
        for (size_t i = results; i < operands.size(); ++i)
          EXPECT_EQ(std::memcmp(parts[i].data(), whole[i].data(), whole[i].bytes()), 0) << i;
      }
    }
}

/// The header may take an engine that this cuDNN lacks, and an ordered engine may have the note of those that are not.
TEST(FakeCudnn, IsAskedAgain) {
  const WithCudnn here(true);
  const TensorType q{DType::BF16, {2, 4, 16, 64}}, lse{DType::F32, {2, 4, 16}};
  const Attributes attributes = {{"scale", 0.125}, {"causal", int64_t(0)}, {"mask", int64_t(0)}};
  const int64_t before = cuda::fallbacks();
  ::setenv("DS_FAKE_CUDNN_UNIFIED", "0", 1);
  (void)cudaKernels().find("attention")({"attention", {q, q, q, q, lse}, attributes}, {});
  ::unsetenv("DS_FAKE_CUDNN_UNIFIED");
  ::setenv("DS_FAKE_CUDNN_NOTED", "1", 1);
  Invocation gradient{"attention_grad", {q, q, q, q, q, lse, q, q, q}, attributes};
  gradient.operands.push_back({DType::U8, {workspaceBytes(gradient, {1, 32 << 20, Device::Cuda})}});
  (void)cudaKernels().find("attention_grad")(gradient, {});
  ::unsetenv("DS_FAKE_CUDNN_NOTED");
  EXPECT_EQ(cuda::fallbacks(), before);
}

/// Small calls fit into any workspace: GPT-2 124M and 1.5B, Llama 8B, long contexts, and heads that share k and v.
TEST(FakeCudnn, FindsAPlannedWorkspaceLargeEnough) {
  const WithCudnn here(true);
  int64_t refused = cuda::fallbacks();
  for (const auto &[batch, heads, groups, rows, depth] :
       std::vector<std::array<int64_t, 5>>{{16, 12, 12, 1024, 64},
                                           {4, 25, 25, 1024, 64},
                                           {2, 32, 8, 2049, 128},
                                           {1, 32, 8, 8192, 128}, // 4 GiB of ordered sums: in chunks of heads
                                           {2, 32, 8, 8192, 128},
                                           {1, 12, 12, 16384, 64},
                                           {64, 12, 12, 1024, 64}}) {
    const TensorType q{DType::BF16, {batch, heads, rows, depth}}, k{DType::BF16, {batch, groups, rows, depth}},
        lse{DType::F32, {batch, heads, rows}};
    Invocation call{"attention_grad", {q, q, k, k, q, lse, q, k, k}, {}};
    call.attributes = {{"scale", 0.125}, {"causal", int64_t(1)}, {"mask", int64_t(0)}};
    const int64_t bytes = workspaceBytes(call, {1, 32 << 20, Device::Cuda});
    call.operands.push_back({DType::U8, {bytes}});
    (void)cudaKernels().find("attention_grad")(call, {});
    EXPECT_EQ(cuda::fallbacks(), refused) << toString(q.shape) << " in " << bytes << " bytes";
    EXPECT_LT(bytes, int64_t(3) << 29);
    call.operands.back().shape = {batch * heads * rows * 8}; // what our own kernel takes
    (void)cudaKernels().find("attention_grad")(call, {});
    EXPECT_EQ(cuda::fallbacks(), ++refused);
  }
}

/// One graph as it should be, of attention, its gradient or a convolution; a test changes one thing.
struct Call {
  std::string kind = "sdpa";
  DataType_t io = DataType_t::BFLOAT16, stats = DataType_t::FLOAT, result = io;
  int64_t heads = 4, groups = 2, queries = 16, keys = 16, depth = 64, columns = depth, lastStride = 1;
  Numbers statsDims = {2, heads, queries, 1}, gradientDims = {2, heads, queries, depth}, bias{};
  int64_t rightBound = 0;
  bool isDeterministic = true;
  Numbers after = {1, 1}, padding = {1, 1};
  int64_t yRows = 8, weightChannels = 4;
  std::vector<NumericalNote_t> barred = {NumericalNote_t::NONDETERMINISTIC};
  std::vector<HeurMode_t> modes = {HeurMode_t::A, HeurMode_t::FALLBACK};
  int64_t mostWorkspace = 1 << 20;
  bool numbersTwice = false, hasNumbers = true, isOutput = true;
  bool hasAddresses = true, hasWorkspace = true;
  size_t offset = 0, missing = 0, missingWorkspace = 0; ///< bytes, of every tensor and of the workspace
  int planGpu = 0, runGpu = 0;

  /// "": it ran; else why not.
  std::string run();

  Tensor tensor(const Numbers &dims, DataType_t type, int64_t last = 1);
  void describe(const Tensor &tensor, const Numbers &dims, DataType_t type, int64_t last = 1);
  void buildAttention();
  void buildConv();
  std::string build(cudnnHandle_t handle, int64_t &workspace);
  std::string execute(cudnnHandle_t handle, int64_t workspace);

  Graph graph{};
  std::vector<Tensor> tensors{};
};

void Call::describe(const Tensor &tensor, const Numbers &dims, DataType_t type, int64_t last) {
  Numbers strides(dims.size());
  int64_t stride = last;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d])
    strides[d] = stride;
  tensor->set_dim(dims).set_stride(strides).set_data_type(type);
  tensors.push_back(tensor);
  if (hasNumbers)
    tensor->set_uid(numbersTwice ? 1 : int64_t(tensors.size()));
}

Tensor Call::tensor(const Numbers &dims, DataType_t type, int64_t last) {
  const Tensor made = graph.tensor(graph::Tensor_attributes());
  describe(made, dims, type, last);
  return made;
}

void Call::buildAttention() {
  const auto q = tensor({2, heads, queries, depth}, io, lastStride), k = tensor({2, groups, keys, depth}, io),
             v = tensor({2, groups, keys, columns}, io);
  const auto set = [&](auto options) {
    if (!bias.empty())
      options.set_bias(tensor(bias, io));
    return options.set_attn_scale(0.125f).set_diagonal_band_right_bound(rightBound);
  };
  if (kind == "sdpa") {
    const auto [o, sums] = graph.sdpa(q, k, v, set(graph::SDPA_attributes().set_generate_stats(true)));
    o->set_output(isOutput);
    sums->set_output(isOutput);
    describe(o, {2, heads, queries, columns}, result);
    describe(sums, statsDims, stats);
    return;
  }
  const auto o = tensor({2, heads, queries, columns}, io), gradient = tensor({2, heads, queries, columns}, io),
             sums = tensor(statsDims, stats);
  auto options = graph::SDPA_backward_attributes().set_deterministic_algorithm(isDeterministic);
  const auto gradients = graph.sdpa_backward(q, k, v, o, gradient, sums, set(options));
  const std::array<Numbers, 3> dims = {gradientDims, {2, groups, keys, depth}, {2, groups, keys, columns}};
  for (size_t i = 0; i < 3; ++i) {
    gradients[i]->set_output(isOutput);
    describe(gradients[i], dims[i], result);
  }
}

void Call::buildConv() {
  const Numbers x = {2, 4, 8, 8}, w = {6, weightChannels, 3, 3}, y = {2, 6, yRows, 8};
  const auto set = [&](auto options) {
    return options.set_pre_padding(padding).set_post_padding(after).set_stride({1, 1}).set_dilation({1, 1});
  };
  Tensor made;
  if (kind == "conv_fprop")
    made = graph.conv_fprop(tensor(x, io), tensor(w, io), set(graph::Conv_fprop_attributes()));
  else
    made = graph.conv_wgrad(tensor(y, io), tensor(x, io), set(graph::Conv_wgrad_attributes()));
  made->set_output(isOutput);
  describe(made, kind == "conv_fprop" ? y : w, result);
}

std::string Call::build(cudnnHandle_t handle, int64_t &workspace) {
  graph.set_intermediate_data_type(DataType_t::FLOAT).set_compute_data_type(DataType_t::FLOAT);
  kind.starts_with("sdpa") ? buildAttention() : buildConv();
  for (const auto &error : {graph.validate(), graph.build_operation_graph(handle), graph.create_execution_plans(modes)})
    if (error.is_bad())
      return error.get_message();
  graph.deselect_numeric_notes(barred).deselect_workspace_greater_than(mostWorkspace);
  for (const auto &error : {graph.check_support(), graph.build_plans(), graph.get_workspace_size(workspace)})
    if (error.is_bad())
      return error.get_message();
  return "";
}

std::string Call::execute(cudnnHandle_t handle, int64_t workspace) {
  std::unordered_map<int64_t, void *> addresses;
  for (const Tensor &tensor : tensors) {
    const size_t bytes = size_t(tensor->dim[0] * tensor->stride[0]) * (tensor->type == DataType_t::FLOAT ? 4 : 2);
    std::byte *memory = shim::allocate(bytes + 16, bytes + offset - missing);
    std::memset(memory, 0, bytes + offset - missing);
    addresses[*tensor->uid] = memory + offset;
  }
  if (!hasAddresses)
    addresses.erase(*tensors.back()->uid);
  std::byte *scratch = shim::allocate(size_t(workspace) + 256, size_t(workspace) - missingWorkspace);
  return graph.execute(handle, addresses, hasWorkspace ? scratch : nullptr).get_message();
}

std::string Call::run() {
  const WithCudnn here(true);
  cudnnHandle_t planned = nullptr, running = nullptr;
  EXPECT_EQ(cudaSetDevice(planGpu), cudaSuccess);
  EXPECT_EQ(cudnnCreate(&planned), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudaSetDevice(runGpu), cudaSuccess);
  EXPECT_EQ(cudnnCreate(&running), CUDNN_STATUS_SUCCESS);
  int64_t workspace = 0;
  std::string refused = build(planned, workspace);
  if (refused.empty())
    refused = execute(running, workspace);
  shim::releaseAll();
  cudnnDestroy(planned);
  cudnnDestroy(running);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  return refused;
}

constexpr char none[] = "no engine is left";

TEST(FakeCudnn, RefusesAttention) {
  EXPECT_EQ(Call{}.run(), "");
  EXPECT_EQ((Call{.io = DataType_t::HALF}.run()), "");
  EXPECT_EQ((Call{.io = DataType_t::HALF, .result = DataType_t::BFLOAT16}.run()), "o is not of q's type");
  EXPECT_EQ((Call{.io = DataType_t::FLOAT}.run()), "k is not of a 16-bit type");
  EXPECT_EQ((Call{.result = DataType_t::FLOAT}.run()), "o is not of a 16-bit type");
  EXPECT_EQ((Call{.depth = 60}.run()), "a head's size is no multiple of 8 or above 256");
  EXPECT_EQ((Call{.depth = 264}.run()), "a head's size is no multiple of 8 or above 256");
  EXPECT_EQ((Call{.depth = 256}.run()), "");
  EXPECT_EQ((Call{.columns = 32}.run()), "heads of q and v differ in size");
  EXPECT_EQ((Call{.groups = 3}.run()), "heads of k or v do not divide those of q");
  EXPECT_EQ((Call{.lastStride = 2}.run()), "q has a last stride other than 1");
  EXPECT_EQ((Call{.stats = DataType_t::BFLOAT16}.run()), "stats are not of float32");
  EXPECT_EQ((Call{.statsDims = {2, 4, 1, 16}}.run()), "stats has other dimensions than q, k and v ask for");
  EXPECT_EQ((Call{.rightBound = -1}.run()), "a right bound below 0");
  EXPECT_EQ((Call{.bias = {1, 4, 16, 16}}.run()), "");
  for (const Numbers &bias : {Numbers{2, 1, 1, 16}, {2, 2, 16, 16}, {1, 1, 16, 1}})
    EXPECT_EQ((Call{.bias = bias}.run()), "a bias is not [B or 1, H or 1, queries, keys]");
}

TEST(FakeCudnn, RefusesGradientsOfAttention) {
  const auto gradient = [](auto change) {
    Call call{.kind = "sdpa_backward"};
    change(call);
    return call.run();
  };
  EXPECT_EQ(gradient([](Call &) {}), "");
  EXPECT_EQ(gradient([](Call &c) { c.gradientDims = {2, 4, 64, 16}; }),
            "dq has other dimensions than q, k and v ask for");
  EXPECT_EQ((Call{.kind = "sdpa_backward", .queries = 1, .keys = 1}.run()), "a gradient of one query and one key");
  EXPECT_EQ((Call{.kind = "sdpa_backward", .heads = 1, .groups = 1, .queries = 1}.run()),
            "the engine's workspace, behind the header's own, is not aligned");
  // 8 heads of 64 by 64 scores in two bytes, and dk and dv of every head.
  const int64_t ordered = 8 * 64 * 64 * 2 + 2 * 8 * 16 * 64 * 2;
  EXPECT_EQ(gradient([](Call &c) { c.mostWorkspace = ordered; }), "");
  EXPECT_EQ(gradient([](Call &c) { c.mostWorkspace = ordered - 1; }), none);
  EXPECT_EQ(gradient([](Call &c) { c.isDeterministic = false; }), none);
  EXPECT_EQ(gradient([](Call &c) { c.isDeterministic = false, c.barred = {}; }), "");
  EXPECT_EQ(gradient([](Call &c) { c.hasWorkspace = false; }), "the plan has no workspace that is aligned");
  EXPECT_EQ(gradient([](Call &c) { c.missingWorkspace = 1; }), "the workspace lies outside of every operand");
}

TEST(FakeCudnn, RefusesConvolutions) {
  EXPECT_EQ((Call{.kind = "conv_fprop"}.run()), "");
  EXPECT_EQ((Call{.kind = "conv_fprop", .io = DataType_t::FLOAT}.run()), "");
  EXPECT_EQ((Call{.kind = "conv_wgrad", .result = DataType_t::FLOAT}.run()),
            "x, w and y are not of one type, float32 or of 16 bits");
  EXPECT_EQ((Call{.kind = "conv_fprop", .io = DataType_t::HALF}.run()), "");
  EXPECT_EQ((Call{.kind = "conv_fprop", .io = DataType_t::HALF, .result = DataType_t::BFLOAT16}.run()),
            "x, w and y are not of one type, float32 or of 16 bits");
  EXPECT_EQ((Call{.kind = "conv_fprop", .weightChannels = 3}.run()), "channels of x, w and y do not fit");
  EXPECT_EQ((Call{.kind = "conv_fprop", .yRows = 7}.run()), "y has another size than x, w and padding give");
  EXPECT_EQ((Call{.kind = "conv_fprop", .padding = {1}}.run()),
            "padding, strides or dilations are not set for each spatial dimension");
  const Call uneven{.kind = "conv_fprop", .after = {0, 1}, .yRows = 7};
  EXPECT_EQ(Call(uneven).run(), "");
  Call fast = uneven;
  fast.modes = {HeurMode_t::A};
  EXPECT_EQ(fast.run(), "no engine of these modes");
}

TEST(FakeCudnn, RefusesWrongAddressesAndNumbers) {
  EXPECT_EQ((Call{.numbersTwice = true}.run()), "o has the number of another tensor");
  EXPECT_EQ((Call{.hasNumbers = false}.run()), "k has no type or no number");
  EXPECT_EQ((Call{.isOutput = false}.run()), "o is no output");
  EXPECT_EQ((Call{.hasAddresses = false}.run()), "stats has no address");
  EXPECT_EQ((Call{.offset = 8}.run()), "k does not lie at a multiple of 16 bytes");
  EXPECT_EQ((Call{.missing = 1}.run()), "k lies outside of every operand");
  EXPECT_EQ((Call{.planGpu = 1}.run()), "a plan of GPU 1 is run without a handle of that GPU");
}

/// What a test of float32 must see where engines that round are not left out, and one of bits where those that add in
/// any order are not.
TEST(FakeCudnn, EnginesAreWhatTheirNotesSay) {
  using Note = NumericalNote_t;
  graph::Operation op{"conv_fprop"};
  const auto set = [&](const char *name, const Numbers &dims) {
    auto tensor = std::make_shared<graph::Tensor_attributes>();
    tensor->set_dim(dims).set_stride({1, 1, 1, 1}).set_data_type(DataType_t::FLOAT);
    op.tensors[name] = tensor;
  };
  for (const char *name : {"x", "w", "y"})
    set(name, {1, 1, 1, 1});
  op.results = {"y"};
  op.conv = {{0, 0}, {0, 0}, {1, 1}, {1, 1}};
  float x = 1 + 0x1p-14f, w = 1, y = 0;
  const auto run = [&](const graph::Engine &engine) {
    graph::compute(op, {{"x", &x}, {"w", &w}, {"y", &y}}, engine);
    return y;
  };
  EXPECT_EQ(run({HeurMode_t::A, {}}), x);
  EXPECT_EQ(run({HeurMode_t::A, {Note::DOWN_CONVERT_INPUTS}, 0, 11}), 1);
  EXPECT_NE(run({HeurMode_t::A, {Note::NONDETERMINISTIC}}), run({HeurMode_t::A, {Note::NONDETERMINISTIC}}));
}

TEST(FakeCudnn, KeepsToItsStreamAndGpu) {
  cudaStream_t stream = nullptr, other = nullptr;
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudnnSetStream(handle, stream), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetStream(handle, other), CUDNN_STATUS_MAPPING_ERROR);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudnnHandle_t late = nullptr;
  EXPECT_EQ(cudnnCreate(&late), CUDNN_STATUS_INTERNAL_ERROR) << "it allocates beside a capture";
  EXPECT_STREQ(cudaGetErrorString(cudaGetLastError()), "cudnnCreate while a stream is capturing");
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(stream, &graph);
  (void)cudaGetLastError();
  for (cudaStream_t one : {stream, other})
    (void)cudaStreamDestroy(one);
  cudnnDestroy(handle);
}

} // namespace

} // namespace ds::kernels::test
