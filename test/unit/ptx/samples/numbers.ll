; Source of numbers_sm80.ptx and numbers_sm90.ptx:
;   llc-22 -O2 -mcpu=sm_80 numbers.ll -o numbers_sm80.ptx; llc-22 -O2 -mcpu=sm_90 numbers.ll -o numbers_sm90.ptx
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

; Four bfloat16 a thread.
define ptx_kernel void @brain(ptr addrspace(1) %a, ptr addrspace(1) %b) "nvvm.maxntid"="256" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr <4 x bfloat>, ptr addrspace(1) %a, i32 %t
  %q = getelementptr <4 x bfloat>, ptr addrspace(1) %b, i32 %t
  %v = load <4 x bfloat>, ptr addrspace(1) %p, align 8
  %w = load <4 x bfloat>, ptr addrspace(1) %q, align 8
  %s = fadd <4 x bfloat> %v, %w
  %m = fmul <4 x bfloat> %s, %w
  %f = call <4 x bfloat> @llvm.fma.v4bf16(<4 x bfloat> %m, <4 x bfloat> %s, <4 x bfloat> %v)
  %x = call <4 x bfloat> @llvm.maximum.v4bf16(<4 x bfloat> %f, <4 x bfloat> %v)
  %d = fdiv <4 x bfloat> %x, %w
  store <4 x bfloat> %d, ptr addrspace(1) %q, align 8
  ret void
}

; Four float32 a thread.
define ptx_kernel void @single(ptr addrspace(1) %a, ptr addrspace(1) %b) "nvvm.reqntid"="8" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr <4 x float>, ptr addrspace(1) %a, i32 %t
  %q = getelementptr <4 x float>, ptr addrspace(1) %b, i32 %t
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  %e = call <4 x float> @llvm.exp2.v4f32(<4 x float> %v)
  %r = call <4 x float> @llvm.maximum.v4f32(<4 x float> %e, <4 x float> %v)
  %g = call <4 x float> @llvm.minnum.v4f32(<4 x float> %r, <4 x float> splat (float 5.0))
  %l = call <4 x float> @llvm.floor.v4f32(<4 x float> %g)
  %o = call <4 x float> @llvm.roundeven.v4f32(<4 x float> %v)
  %x = fadd <4 x float> %l, %o
  %c = call <4 x float> @llvm.copysign.v4f32(<4 x float> %x, <4 x float> %v)
  %n = fptrunc <4 x float> %c to <4 x bfloat>
  %y = fpext <4 x bfloat> %n to <4 x float>
  %i = fcmp ueq <4 x float> %y, %v
  %m = fneg <4 x float> %y
  %z = select <4 x i1> %i, <4 x float> %y, <4 x float> %m
  store <4 x float> %z, ptr addrspace(1) %q, align 16
  ret void
}

; A byte and 64 bits a thread, in a loop of `n` rounds.
define ptx_kernel void @integer(ptr addrspace(1) %a, ptr addrspace(1) %b, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i8, ptr addrspace(1) %a, i32 %t
  %q = getelementptr i64, ptr addrspace(1) %b, i32 %t
  %v = load i8, ptr addrspace(1) %p
  %s = sext i8 %v to i64
  %u = load i64, ptr addrspace(1) %q
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %loop]
  %h = phi i64 [%u, %entry], [%x, %loop]
  %d = udiv i64 %h, 12345
  %r = urem i64 %d, %n
  %f = call i64 @llvm.fshl.i64(i64 %h, i64 %d, i64 %s)
  %x = xor i64 %f, %r
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %loop, label %end
end:
  %w = ashr i64 %x, 7
  %fp = sitofp i64 %w to float
  %hf = fptrunc float %fp to half
  %bits = bitcast half %hf to i16
  %c = icmp ugt i16 %bits, 31743
  %z = zext i1 %c to i8
  store i8 %z, ptr addrspace(1) %p
  store i64 %x, ptr addrspace(1) %q
  ret void
}
