//! What can be rung up.

use tauri::State;
use till::Till;

use super::Answer;
use crate::dto::{ArticlePage, ArticleQuery, Category, all};

/// The categories, in their order.
#[tauri::command]
#[specta::specta]
pub(crate) async fn categories(till: State<'_, Till>) -> Answer<Vec<Category>> {
    Ok(all(till.categories().await?))
}

/// The articles of a category, or those that hold every word typed.
#[tauri::command]
#[specta::specta]
pub(crate) async fn articles(till: State<'_, Till>, query: ArticleQuery) -> Answer<ArticlePage> {
    let ArticleQuery { text, category } = query;
    Ok(till.articles(till::ArticleQuery { text, category }).await?.into())
}
