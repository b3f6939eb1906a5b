// Every misuse of libraries of PTX and their kernels is found under some seed, and under none where it is not there.
#include "test/shim/FakeRuntimeTesting.h"

#include <array>
#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>

namespace shim {

namespace {

/// to[i] = from[i] + 1 of bytes, a thread each.
constexpr const char *addOnePtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .u64 to, .param .u64 from, .param .u32 n)
.maxntid 64
{
  .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<6>;
  ld.param.b64 %rd1, [to]; ld.param.b64 %rd2, [from]; ld.param.b32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1; @%p1 bra end;
  cvt.u64.u32 %rd3, %r5; add.s64 %rd4, %rd2, %rd3; add.s64 %rd5, %rd1, %rd3;
  ld.global.u8 %r6, [%rd4]; add.s32 %r6, %r6, 1; st.global.u8 [%rd5], %r6;
end: ret;
})";

/// A library of it, and launches of its kernel.
class AddOne {
public:
  explicit AddOne(World &world, const std::string &text = addOnePtx, const char *name = "add_one") : world_(world) {
    world_.ok(cudaLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    if (library_ != nullptr)
      world_.ok(cudaLibraryGetKernel(&kernel_, library_, name));
  }
  ~AddOne() { unload(); }
  AddOne(const AddOne &) = delete;
  AddOne &operator=(const AddOne &) = delete;

  void launch(const uint8_t *to, const uint8_t *from, int stream = 0, uint32_t n = count, unsigned threads = 16) {
    void *arguments[] = {static_cast<void *>(&to), static_cast<void *>(&from), &n};
    const dim3 blocks((n + threads - 1) / threads);
    world_.ok(cudaLaunchKernel(kernel_, blocks, dim3(threads), arguments, 0, world_.streams[size_t(stream)]));
    to = from = nullptr; // the launch has its own
  }
  void compile() const {
    cudaFuncAttributes attributes;
    world_.ok(cudaFuncGetAttributes(&attributes, kernel_));
  }
  void unload() {
    if (library_ != nullptr && !unloaded_)
      world_.ok(cudaLibraryUnload(library_));
    unloaded_ = true;
  }

private:
  World &world_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  bool unloaded_ = false;
};

/// The text with another part.
std::string with(std::string text, const std::string &part, const std::string &other) {
  return text.replace(text.find(part), part.size(), other);
}

const Misuse ofMemory[] = {
    {"PTX that a wait is missing for",
     [](World &w, bool planted) {
       AddOne ptx(w);
       w.fill(w.device[0], 6, 0);
       ptx.launch(w.device[1], w.device[0]);
       w.record(0, 0);
       if (!planted)
         w.wait(1, 0);
       ptx.launch(w.device[2], w.device[1], 1);
       w.await();
       w.expect(w.device[2], 8);
     },
     "wrong bytes"},
    {"PTX whose threads pass on what they write",
     [](World &w, bool planted) {
       AddOne ptx(w);
       w.fill(w.device[0], 6, 0);
       ptx.launch(w.device[0] + (planted ? 1 : 0), w.device[0], 0, planted ? count - 1 : count);
       w.await();
       std::array<uint8_t, count> seen{};
       w.copy(seen.data(), w.device[0], 0);
       if (seen[count / 2] != 7)
         w.wrong = "wrong bytes";
     },
     "wrong bytes"},
    {"PTX that reads behind an allocation",
     [](World &w, bool planted) {
       AddOne ptx(w);
       ptx.launch(w.device[1], w.device[0] + (planted ? 1 : 0));
       w.await();
     },
     "entry 'add_one', block 3, thread 15, line 12 ('ld.global.u8 %r6, [%rd4]; add.s32 %r6, %r6, 1; st.global.u8 "
     "[%rd5], %r6;') reads 1 bytes outside of every allocation"},
    {"PTX that writes the host's own memory",
     [](World &w, bool planted) {
       AddOne ptx(w);
       std::array<uint8_t, count> pageable{};
       ptx.launch(planted ? pageable.data() : w.host, w.device[0]);
       w.await();
     },
     "writes 1 bytes outside of every allocation"},
    {"memory that is freed while PTX on it is pending",
     [](World &w, bool planted) {
       AddOne ptx(w);
       uint8_t *memory = nullptr;
       w.ok(cudaMalloc(&memory, count));
       ptx.launch(memory, w.device[0]);
       if (!planted)
         w.await();
       w.ok(cudaFree(memory));
       w.await();
     },
     "writes 1 bytes of memory that was freed"},
};

TEST(FakeLibrary, FindsPtxThatTouchesMemoryAtTheWrongTimeOrPlace) { expectEachIsFound(ofMemory); }

const Misuse ofLifetime[] = {
    {"a launch of PTX whose library was unloaded",
     [](World &w, bool planted) {
       AddOne ptx(w);
       if (planted)
         ptx.unload();
       ptx.launch(w.device[1], w.device[0]);
       w.await();
     },
     "a launch of what is no kernel, or of a library that was unloaded"},
    {"a library that is unloaded while its PTX is pending",
     [](World &w, bool planted) {
       AddOne ptx(w);
       ptx.launch(w.device[1], w.device[0]);
       if (!planted)
         w.await();
       ptx.unload();
       w.await();
     },
     "add_one runs after its library was unloaded"},
    {"a graph that outlives the library of its PTX",
     [](World &w, bool planted) {
       AddOne ptx(w);
       w.fill(w.device[0], 6, 0);
       w.begin(0);
       ptx.launch(w.device[1], w.device[0]);
       ptx.launch(w.device[2], w.device[1]);
       const cudaGraphExec_t graph = w.end();
       w.launch(graph);
       w.expect(w.device[2], 8);
       if (planted) {
         ptx.unload();
         w.launch(graph);
         w.await();
       }
     },
     "add_one runs after its library was unloaded"},
    {"a library that is loaded beside a capture that is not relaxed",
     [](World &w, bool planted) {
       w.begin(0, planted ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeRelaxed);
       const AddOne ptx(w);
       (void)cudaGraphExecDestroy(w.end());
     },
     "cudaLibraryLoadData while a stream is capturing"},
    {"PTX that is compiled beside a capture that is not relaxed",
     [](World &w, bool planted) {
       const AddOne ptx(w);
       w.begin(0, planted ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeRelaxed);
       ptx.compile();
       (void)cudaGraphExecDestroy(w.end());
     },
     "cudaFuncGetAttributes while a stream is capturing"},
};

TEST(FakeLibrary, FindsLibrariesThatAreLoadedOrUnloadedAtTheWrongTime) { expectEachIsFound(ofLifetime); }

const Misuse unfit[] = {
    {"PTX on more threads than it is compiled for",
     [](World &w, bool planted) {
       AddOne ptx(w);
       ptx.launch(w.device[1], w.device[0], 0, count, planted ? 65 : 64);
       w.await();
     },
     "add_one is launched with 65 threads a block, and is compiled for 64"},
    {"PTX that does not read",
     [](World &w, bool planted) { AddOne(w, planted ? with(addOnePtx, "add.s32", "add.f32") : addOnePtx).compile(); },
     "PTX line 12, 'ld.global.u8 %r6, [%rd4]; add.f32 %r6, %r6, 1; st.global.u8 [%rd5], %r6;': add.f32 has no "
     "rounding"},
    {"PTX for a GPU that is not there",
     [](World &w, bool planted) { AddOne(w, planted ? with(addOnePtx, "sm_90", "sm_100a") : addOnePtx).compile(); },
     "PTX for sm_100a, and the GPU is sm_90"},
    {"PTX of a version that the driver does not know",
     [](World &w, bool planted) { AddOne(w, planted ? with(addOnePtx, "8.0", "9.1") : addOnePtx).compile(); },
     "PTX of version 9.1, and the driver knows 9.0"},
    {"a kernel that its library does not have",
     [](World &w, bool planted) { AddOne(w, addOnePtx, planted ? "add_two" : "add_one"); },
     "the library has no kernel add_two"},
};

TEST(FakeLibrary, FindsPtxThatDoesNotFit) { expectEachIsFound(unfit); }

TEST(FakeLibrary, ErrorsOfPtxHaveTheirNumbers) {
  World world(3);
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  cudaFuncAttributes attributes;
  ASSERT_EQ(cudaLibraryLoadData(&library, "no PTX", nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
  ASSERT_EQ(cudaLibraryGetKernel(&kernel, library, "add_one"), cudaSuccess) << "it is compiled late";
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, kernel), cudaErrorInvalidPtx);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 32, nullptr, 0, world.streams[0]), cudaErrorInvalidPtx);
  ASSERT_EQ(cudaLibraryLoadData(&library, addOnePtx, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaSuccess);
  EXPECT_EQ(cudaLibraryGetKernel(&kernel, library, "add_two"), cudaErrorSymbolNotFound);
  ASSERT_EQ(cudaLibraryGetKernel(&kernel, library, "add_one"), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(kernel, 0, 32, nullptr, 0, world.streams[0]), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 1025, nullptr, 0, world.streams[0]), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 128, nullptr, 0, world.streams[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(kernel, 1, 32, nullptr, 0, world.streams[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(1, 2), 32, nullptr, 0, world.streams[0]), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLibraryUnload(library), cudaSuccess);
  EXPECT_EQ(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLibraryGetKernel(&kernel, library, "add_one"), cudaErrorInvalidResourceHandle);
}

TEST(FakeLibrary, PtxOutsideOfMemoryIsAnIllegalAddress) {
  World world(3);
  AddOne ptx(world);
  ptx.launch(world.device[0], nullptr);
  EXPECT_EQ(cudaStreamSynchronize(world.streams[0]), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "it ends every later call";
  reviveDevices();
}

TEST(FakeLibrary, PtxThatDoesNotEndIsALaunchFailure) {
  World world(3);
  AddOne ptx(world, with(addOnePtx, "end: ret;", "end: bra end; ret;"));
  ptx.launch(world.device[0], world.device[1]);
  EXPECT_EQ(cudaStreamSynchronize(world.streams[0]), cudaErrorLaunchFailure);
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorLaunchFailure)).find("as many as it may run"), std::string::npos);
  reviveDevices();
}

TEST(FakeLibrary, PtxTouchesMemoryOfItsPeersOnly) {
  World world(3);
  uint8_t *other = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&other, count), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  AddOne ptx(world);
  ptx.launch(other, world.device[0]);
  const cudaError_t error = cudaStreamSynchronize(world.streams[0]);
  EXPECT_EQ(error, cudaErrorIllegalAddress);
  EXPECT_TRUE(
      std::string(cudaGetErrorString(error)).ends_with("writes 1 bytes of memory of GPU 1 without peer access"));
  reviveDevices();
  (void)cudaFree(other);
}

} // namespace

} // namespace shim
