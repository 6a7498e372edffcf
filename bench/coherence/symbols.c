// SPDX-License-Identifier: MIT OR 0BSD
// Names of the program's own static variables, from its symbol table. See machine.h.
#include "machine.h"
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char *image;
static size_t image_size;

static void image_map(void) {
    struct stat st;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) coherence_die("/proc/self/exe cannot be read");
    image_size = (size_t)st.st_size;
    void *p = mmap(NULL, image_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED) coherence_die("/proc/self/exe cannot be mapped");
    image = p;
}
static const void *image_at(size_t offset, size_t size) {
    if (offset > image_size || size > image_size - offset) coherence_die("a damaged program");
    return image + offset;
}
void static_name(uintptr_t addr, char *text, size_t size) {
    if (!image) image_map();
    const Elf64_Ehdr *head = image_at(0, sizeof *head);
    const Elf64_Shdr *section = image_at(head->e_shoff, head->e_shnum * sizeof *section);
    for (int i = 0; i < head->e_shnum; i++) {
        if (section[i].sh_type != SHT_SYMTAB) continue;
        const Elf64_Sym *s = image_at(section[i].sh_offset, section[i].sh_size);
        const Elf64_Shdr *names = &section[section[i].sh_link];
        for (size_t k = 0; k < section[i].sh_size / sizeof *s; k++)
            if (ELF64_ST_TYPE(s[k].st_info) == STT_OBJECT && addr - s[k].st_value < s[k].st_size) {
                snprintf(text, size, "static %s",
                         (const char *)image_at(names->sh_offset + s[k].st_name, 1));
                return;
            }
    }
    snprintf(text, size, "static");
}
