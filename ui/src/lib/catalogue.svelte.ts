import type { Backend } from './backend';
import type { Trouble } from './trouble.svelte';
import type { Article, Category } from './types';

/** Articles as the cashier narrows them down: a category, a search, or both. */
export class CatalogueStore {
  categories = $state.raw<Category[]>([]);
  articles = $state.raw<Article[]>([]);
  more = $state(false);
  text = $state('');
  category = $state<string | null>(null);
  loaded = $state(false);
  /** The last question had no answer: what the shelf holds is not known. */
  failed = $state(false);

  #asked = 0;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
  ) {}

  async load(): Promise<void> {
    const categories = await this.trouble.read(() => this.backend.categories());
    if (categories) this.categories = categories;
    await this.refresh();
  }

  choose(category: string | null): void {
    this.category = category;
    void this.refresh();
  }

  search(text: string): void {
    this.text = text;
    void this.refresh();
  }

  searchAll(): void {
    this.category = null;
    void this.refresh();
  }

  reset(): void {
    if (this.text === '') return;
    this.search('');
  }

  /** Reads the articles; false where that was of no use: not read, or asked anew meanwhile. */
  async refresh(): Promise<boolean> {
    // Answers can overtake each other while someone types; only the last question counts.
    const asked = ++this.#asked;
    const query = { text: this.text.trim(), category: this.category };
    const page = await this.trouble.read(() => this.backend.articles(query));
    if (asked !== this.#asked) return false;
    this.loaded = true;
    this.failed = page === null;
    if (!page) return false;
    this.articles = page.articles;
    this.more = page.more;
    return true;
  }
}
