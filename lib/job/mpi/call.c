// SPDX-License-Identifier: BSD-3-Clause
// Finds the functions of MPI behind this library, and those of tools in between.
#include "follow.h"
#include "loader_symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS_MAX 1024
#define ERROR_OTHER 16 // close to MPI_ERR_OTHER; the result of a function that does not exist

static pthread_mutex_t find_mutex = PTHREAD_MUTEX_INITIALIZER;

// Stands in for a missing function. Libraries that can work without MPI look for functions like
// this one.
static int missing_function(void) {
	return ERROR_OTHER;
}

static const void *object_base(const void *address) {
	Dl_info info;

	return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static void *find_symbol_in_object(const char *path, const char *name) {
	void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	void *symbol;

	if (object == NULL)
		return NULL;
	symbol = dlsym(object, name);
	dlclose(object); // the library stays loaded exactly as long as without us
	return symbol != NULL && object_base(symbol) != object_base(mpi_calls) ? symbol : NULL;
}

struct objects {
	const char *names[OBJECTS_MAX];
	uintptr_t bases[OBJECTS_MAX];
	unsigned int count;
};

static int collect_object(struct dl_phdr_info *info, size_t size, void *context) {
	struct objects *objects = context;

	(void)size;
	if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0')
		return 0;
	if (objects->count == OBJECTS_MAX)
		return 1;
	objects->bases[objects->count] = info->dlpi_addr;
	objects->names[objects->count++] = info->dlpi_name;
	return 0;
}

// Search all loaded objects, in load order. The names stay valid because nothing is unloaded here.
static void *find_symbol_in_any_library(const char *name) {
	struct objects *objects = calloc(1, sizeof(*objects));
	void *symbol = NULL;

	if (objects == NULL)
		return NULL;
	dl_iterate_phdr(collect_object, objects);
	for (unsigned int n = 0; n < objects->count && symbol == NULL; n++)
		symbol = find_symbol_in_object(objects->names[n], name);
	free(objects);
	return symbol;
}

// Find a symbol as the loader would bind it: in the order of the whole program. If the caller was
// loaded by dlopen(), search the libraries that the caller is linked with.
static void *find_next_symbol(const char *name, const void *caller) {
	void *symbol = dlsym(RTLD_NEXT, name);
	Dl_info info;

	if (symbol != NULL)
		return symbol;
	if (caller != NULL && dladdr(caller, &info) != 0 && info.dli_fname != NULL)
		symbol = find_symbol_in_object(info.dli_fname, name);
	return symbol != NULL ? symbol : find_symbol_in_any_library(name);
}

void *call_resolve(unsigned int number, const void *caller) {
	struct call *call = &mpi_calls[number];
	// Called without our lock: a thread that holds the loader's lock may wait for ours in a
	// constructor.
	void *next = find_next_symbol(call->name, caller);
	void *outer = find_next_symbol(call->name + 1, caller); // MPI_Send
	bool is_apart;
	void *found;

	if (next == NULL)
		next = outer != NULL ? outer : (void *)missing_function;
	// MPI_X and PMPI_X of MPI itself are in one object. So an MPI_X from another object belongs
	// to a tool.
	is_apart = outer != NULL && object_base(outer) != object_base(next);
	pthread_mutex_lock(&find_mutex);
	found = atomic_load_explicit(&call->next, memory_order_relaxed);
	if (found == NULL && is_apart)
		call->outer = outer;
	if (found == NULL)
		atomic_store_explicit(&call->next, next, memory_order_release);
	pthread_mutex_unlock(&find_mutex);
	return found != NULL ? found : next;
}

void *call_find_in_same_library(const char *name) {
	const void *found = NULL;
	Dl_info info;

	for (unsigned int n = 0; n < mpi_call_count && found == NULL; n++)
		found = atomic_load_explicit(&mpi_calls[n].next, memory_order_acquire);
	return found != NULL && dladdr(found, &info) != 0
		       ? find_symbol_in_object(info.dli_fname, name)
		       : NULL;
}

void *call_find_unwrapped(const char *name) {
	void *symbol = dlsym(RTLD_NEXT, name);

	if (symbol == NULL)
		symbol = call_find_in_same_library(name);
	return symbol != NULL ? symbol : find_symbol_in_any_library(name);
}

// A copy relocation may have moved the variable into the program itself.
void *call_find_variable(const char *name) {
	void *symbol = dlsym(RTLD_DEFAULT, name);

	return symbol != NULL ? symbol : call_find_unwrapped(name);
}

unsigned int call_count_libraries(void) {
	struct objects *objects = calloc(1, sizeof(*objects));
	unsigned int count = 0;

	if (objects == NULL)
		return 1;
	dl_iterate_phdr(collect_object, objects);
	for (unsigned int n = 0; n < objects->count; n++) {
		void *symbol = find_symbol_in_object(objects->names[n], "PMPI_Init");

		// The symbol may belong to a library that this object depends on.
		count += symbol != NULL && (uintptr_t)object_base(symbol) == objects->bases[n];
	}
	free(objects);
	return count;
}
