/* A plugin that is closed and opened again all the time. Nobody calls its functions. The second one stands behind a call, so that its
 * address looks like a return address. */
__asm__(".text\n"
	".globl reloaded_first\n.type reloaded_first, @function\n"
	"reloaded_first:\n"
	".cfi_startproc\n"
	"sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"call *%rax\n"
	".cfi_endproc\n"
	".size reloaded_first, .-reloaded_first\n"
	".globl reloaded\n.type reloaded, @function\n"
	"reloaded:\n"
	".cfi_startproc\n"
	"ret\n"
	".cfi_endproc\n"
	".size reloaded, .-reloaded\n");
